// SPDX-License-Identifier: Apache-2.0
// Rules that span options. Ranges of single options stand in their rows.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace stoker::config {

/// One sentence per broken rule, after resolve_machine's choices.
std::vector<std::string> broken_rules(const Options& options);
/// The same for rules that need the data or its choices.
std::vector<std::string> broken_data_rules(const Options& options, const DataFacts& data);

}  // namespace stoker::config
