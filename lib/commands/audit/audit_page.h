// SPDX-License-Identifier: Apache-2.0
// What an audit found, as a page with pictures.
#pragma once

#include <string>

#include "commands/audit/audited.h"
#include "data/image/decode.h"

namespace stoker::train {

/// `made_by`: "stoker train 0.1.0"; `time`: UTC. Reads the samples that it shows once more; of each finding at most
/// some dozens.
std::string audit_page(const Audited& audited, const data::DecodeLimits& limits, const std::string& made_by,
                       const std::string& time);

}  // namespace stoker::train
