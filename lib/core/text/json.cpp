// SPDX-License-Identifier: Apache-2.0
#include "core/text/json.h"

#include <set>

#include "core/error.h"
#include "core/format.h"

namespace stoker::core {

Json parse_json(std::string_view text, const std::string& what, int max_depth) {
  std::vector<std::set<std::string>> keys;  // of every open object
  const auto check = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth >= max_depth) {
      throw Error(ErrorKind::data, format("{}: JSON nested deeper than {} levels", what, max_depth));
    }
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second) {
      throw Error(ErrorKind::data, format("{}: duplicate JSON key {}", what, printable(parsed.get<std::string>())));
    }
    return true;
  };
  try {
    return Json::parse(text, check);
  } catch (const Json::exception& error) {
    throw Error(ErrorKind::data, format("{}: not valid JSON: {}", what, error.what()));
  }
}

}  // namespace stoker::core
