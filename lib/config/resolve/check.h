// SPDX-License-Identifier: Apache-2.0
// Rules that span options. Ranges of single options stand in their rows.
#pragma once

#include <string>
#include <vector>

#include "config/resolution.h"

namespace stoker::config {

/// One sentence per broken rule. `resolution` is that of `given`; rules about what is only assumed are left out.
std::vector<std::string> broken_rules(const Options& given, const Resolution& resolution, const Facts& facts);
/// One sentence per broken rule about the data or what follows from it.
std::vector<std::string> broken_data_rules(const ResolvedOptions& options, const DataFacts& data);

}  // namespace stoker::config
