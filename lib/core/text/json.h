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

/// Why a value could not be read, such as "key 'height' not found" or "type must be number, but is
/// string": the library's text without the name of its exception, for any terminal.
std::string problem_text(const Json::exception& error);

/// In one line without its end. Bytes that are no UTF-8, as names of files may hold, are replaced and no error; a
/// number that is not finite is written as null.
std::string json_line(const Json& json);
/// json_line() as a file that people read: lines, each with its end.
std::string json_page(const Json& json, int indent = 1);

/// Writes and reads a struct as an object with its fields as keys, in this order: `Json(value)`, `json.get<Type>()`.
/// Stands in the namespace of the struct. Reading throws Json::exception for what was not written so.
#define STOKER_JSON_FIELDS(Type, ...)                                               \
  inline void to_json(core::Json& nlohmann_json_j, const Type& nlohmann_json_t) {   \
    NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(NLOHMANN_JSON_TO, __VA_ARGS__))        \
  }                                                                                 \
  inline void from_json(const core::Json& nlohmann_json_j, Type& nlohmann_json_t) { \
    NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(NLOHMANN_JSON_FROM, __VA_ARGS__))      \
  }

}  // namespace stoker::core
