// SPDX-License-Identifier: Apache-2.0
// What an audit found, as JSON for programs: every sample by name.
#pragma once

#include "commands/audit/audited.h"
#include "core/text/json.h"

namespace stoker::train {

core::Json audit_json(const Audited& audited);

}  // namespace stoker::train
