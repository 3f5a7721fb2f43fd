// SPDX-License-Identifier: Apache-2.0
// What an audit found, as text for people.
#pragma once

#include <string>

#include "commands/audit/audited.h"

namespace stoker::train {

/// Lines of at most some examples of each finding.
std::string audit_text(const Audited& audited);

}  // namespace stoker::train
