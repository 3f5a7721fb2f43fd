// SPDX-License-Identifier: Apache-2.0
#include "config/render/describe.h"

#include <vector>

#include "config/table/parse_value.h"

namespace stoker::config {
namespace {

std::string joined_with(const std::vector<std::string>& words, const std::string& separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

/// "-b, -x, " for the one-letter names.
std::string short_flags(const std::vector<std::string>& aliases) {
  std::string text;
  for (const std::string& alias : aliases) {
    if (alias.size() == 1) text += "-" + alias + ", ";
  }
  return text;
}

/// Beside the flag where they fit there, else in the description of the values.
bool stand_beside_flag(const std::vector<std::string>& choices) {
  constexpr size_t kRoom = 70;  // columns
  return !choices.empty() && joined_with(choices, "|").size() <= kRoom;
}

std::string value_of_flag(const std::string& placeholder, const std::vector<std::string>& choices) {
  if (stand_beside_flag(choices)) return " " + joined_with(choices, "|");
  if (!choices.empty()) return " NAME";
  return placeholder.empty() ? "" : " " + placeholder;
}

}  // namespace

std::string flag_text(const Row& row) {
  const std::string shorts = short_flags(row.aliases);
  return shorts + (row.is_switch ? "--[no-]" : "--") + row.name + value_of_flag(row.placeholder, row.choices);
}

std::string flag_text(const Flag& flag) {
  return short_flags(flag.aliases) + "--" + flag.name + value_of_flag(flag.placeholder, flag.choices);
}

std::string accepted_text(const Row& row) {
  if (row.is_switch && row.choices.empty()) return row.default_text == "auto" ? "true, false or auto" : "";
  const std::string range = row.choices.empty() ? row.range : joined_with(row.choices, ", ");
  return row.unit + (row.unit.empty() || range.empty() ? "" : ": ") + range;
}

std::string value_text(const Row& row) {
  const std::string accepted = stand_beside_flag(row.choices) ? row.unit : accepted_text(row);
  return (accepted.empty() ? "" : accepted + "; ") + "default " + default_value_text(row);
}

std::string alias_text(const Row& row) {
  std::string text;
  for (const std::string& alias : row.aliases) {
    if (alias.size() > 1) text += (text.empty() ? "--" : ", --") + alias;
  }
  return text.empty() ? "" : " Also " + text + ".";
}

std::string default_value_text(const Row& row) {
  const bool is_empty = row.default_text.find_first_not_of(',') == std::string::npos;
  return is_empty ? "none" : row.default_text;
}

}  // namespace stoker::config
