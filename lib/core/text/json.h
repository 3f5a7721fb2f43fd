// SPDX-License-Identifier: Apache-2.0
// JSON through nlohmann-json, with limits for text that we did not write ourselves.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace stoker::core {

/// Keeps the order in which keys were added, so that what we write is stable. To find a key, or to add one with [],
/// takes time linear in the number of keys: for objects with few keys, or for going over all of them.
using Json = nlohmann::ordered_json;

/// Parses untrusted text. Rejects nesting deeper than `max_depth`, duplicate keys, invalid UTF-8 and trailing
/// bytes. Takes time n log n in the length of the text. Throws Error{data} whose message begins with `what` (a path).
Json parse_json(std::string_view text, const std::string& what, int max_depth = 8);

}  // namespace stoker::core
