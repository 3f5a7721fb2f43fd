// SPDX-License-Identifier: Apache-2.0
#include "config/read/flag_names.h"

#include <algorithm>
#include <cctype>
#include <stdexcept>

#include "config/table/table.h"
#include "core/format.h"

namespace stoker::config {

bool FlagTarget::has_value(const std::string& word) const {
  const std::string small = core::lower_case(word);
  return small == "true" || small == "false" || small == "auto" ||
         std::find(words.begin(), words.end(), small) != words.end();
}

bool begins_long_flag(const std::string& word) {
  return word.size() > 2 && word[0] == '-' && word[1] == '-' && std::isalpha(static_cast<unsigned char>(word[2]));
}

FlagNames::FlagNames(const CommandLine& line, const Table& table, CommonFlags& common)
    : line_(line), syntax_(*line.syntax), common_(common_flags(syntax_, common)), table_(table) {
  for (const std::vector<Flag>* const flags : {&syntax_.flags, &common_}) {
    for (const Flag& flag : *flags) {
      FlagTarget target;
      target.flag = &flag;
      target.is_own = flags == &syntax_.flags;
      target.is_switch = flag.is_switch();
      add(flag.name, flag.aliases, target);
    }
  }
  for (const Row& row : table_.rows()) {
    if (!syntax_.takes(row)) continue;
    add_option(row.name, row.aliases, row.is_switch, row.is_switch, row.choices);
  }
  for (const Shorthand& shorthand : table_.shorthands()) {
    if (!accepts(syntax_, table_, shorthand)) continue;
    add_option(shorthand.name, {}, shorthand.is_switch, shorthand.has_negation, {});
  }
}

void FlagNames::add_option(const std::string& name, const std::vector<std::string>& aliases, bool is_switch,
                           bool has_negation, const std::vector<std::string>& words) {
  FlagTarget target;
  target.words = words;
  target.option = name;
  target.is_switch = is_switch;
  add(name, aliases, target);
  if (!has_negation) return;
  target.negated = true;
  std::vector<std::string> negated;
  for (const std::string& alias : aliases) negated.push_back("no-" + alias);
  add("no-" + name, negated, target);
}

void FlagNames::add(const std::string& name, const std::vector<std::string>& aliases, FlagTarget target) {
  std::vector<std::string> names = aliases;
  names.push_back(name);
  for (const std::string& one : names) {
    target.written = (one.size() == 1 ? "-" : "--") + one;
    if (!by_name_.emplace(one, target).second) throw std::logic_error("two flags of one name: " + target.written);
  }
}

std::vector<std::string> FlagNames::long_names() const {
  std::vector<std::string> names;
  for (const auto& [name, target] : by_name_)
    if (name.size() > 1) names.push_back(name);
  return names;
}

const FlagTarget* FlagNames::target_of(const std::string& word) const {
  if (word.size() < 2 || word[0] != '-') return nullptr;
  const std::string name = word[1] == '-' ? word.substr(2, word.find('=') - 2) : word.substr(1);
  if ((word[1] == '-') != (name.size() > 1)) return nullptr;
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &found->second;
}

std::string FlagNames::with_canonical_dashes(const std::string& word) const {
  const size_t equals = std::min(word.find('='), word.size());
  if (equals == 3 && word[0] == '-' && word[1] != '-' && by_name_.count(word.substr(1, 2))) return "-" + word;
  if (!begins_long_flag(word)) return word;
  return kebab(word.substr(0, equals)) + word.substr(equals);
}

std::string FlagNames::commands_with(const std::string& name) const {
  const std::string plain = name.rfind("no-", 0) == 0 && !table_.find(name) ? name.substr(3) : name;
  if (!syntax_.name.empty() && (table_.find(plain) || table_.find_shorthand(plain))) {
    return "an option of training, not of " + syntax_.name;
  }
  const std::string not_here = syntax_.name.empty() ? "" : ", not of " + syntax_.name;
  for (const Syntax* const other : line_.others) {
    for (const Flag& flag : other->flags) {
      if (flag.name != name && std::count(flag.aliases.begin(), flag.aliases.end(), name) == 0) continue;
      return (other->name.empty() ? "a flag of training" : "a flag of train " + other->name) + not_here;
    }
  }
  return "";
}

}  // namespace stoker::config
