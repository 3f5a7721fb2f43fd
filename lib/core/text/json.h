// SPDX-License-Identifier: Apache-2.0
// JSON through nlohmann-json, with limits for text that we did not write ourselves.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace stoker::core {

/// Keeps the order in which keys were added, so that what we write is stable.
using Json = nlohmann::ordered_json;

/// Parses untrusted text. Rejects nesting deeper than `max_depth`, duplicate keys, invalid UTF-8 and trailing
/// bytes. Throws Error{data} whose message begins with `what` (a path).
Json parse_json(std::string_view text, const std::string& what, int max_depth = 8);

}  // namespace stoker::core
