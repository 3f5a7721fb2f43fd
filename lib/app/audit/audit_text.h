// SPDX-License-Identifier: Apache-2.0
// What an audit found, as text for people.
#pragma once

#include <string>

#include "app/audit/audited.h"

namespace stoker::app {

/// Lines of at most some examples of each finding.
std::string audit_text(const Audited& audited);

}  // namespace stoker::app
