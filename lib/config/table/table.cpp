// SPDX-License-Identifier: Apache-2.0
#include "config/table/table.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <stdexcept>

#include "config/table/codec.h"
#include "config/table/declaration.h"
#include "config/table/foreign_words.h"
#include "config/table/parse_value.h"
#include "core/format.h"

namespace stoker::config {

std::string kebab(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

template <typename AnyOptions>
void Table::declare(AnyOptions& options) {
  Declaration declaration(*this);
  declare_data(declaration, options);
  declare_task(declaration, options);
  declare_training(declaration, options);
  declare_process(declaration, options);
  declare_foreign();
}

Table::Table(Options& options) { declare(options); }
Table::Table(ResolvedOptions& options) { declare(options); }

Row& Table::row_at(const void* field) {
  const auto found = std::find_if(rows_.begin(), rows_.end(), [field](const Row& row) {
    return row.field == field || std::count(row.more_fields.begin(), row.more_fields.end(), field) > 0;
  });
  if (found == rows_.end()) throw std::logic_error("no option is bound to this field");
  return *found;
}

const Row* Table::find(const std::string& name) const {
  const std::string wanted = kebab(name);
  for (const Row& row : rows_) {
    if (row.name == wanted) return &row;
    if (std::find(row.aliases.begin(), row.aliases.end(), wanted) != row.aliases.end()) return &row;
  }
  return nullptr;
}

Row* Table::find(const std::string& name) {
  return const_cast<Row*>(static_cast<const Table*>(this)->find(name));  // the rows are ours and not const
}

const Shorthand* Table::find_shorthand(const std::string& name) const {
  const std::string wanted = kebab(name);
  for (const Shorthand& shorthand : shorthands_) {
    if (shorthand.name == wanted) return &shorthand;
  }
  return nullptr;
}

void Table::note_use(const std::string& name, const Origin& origin) {
  for (Shorthand& shorthand : shorthands_) {
    if (shorthand.name == kebab(name)) shorthand.used = origin;
  }
}

void Table::declare_foreign() {
  for (const ForeignOption& word : foreign_options()) {
    Shorthand shorthand;
    shorthand.name = word.name;
    for (const auto& [patterns, values] : cases_of(word)) {
      for (const std::string& pattern : patterns) shorthand.choices.emplace_back(pattern, values);
    }
    const auto has = [&](const char* text) {
      return std::any_of(shorthand.choices.begin(), shorthand.choices.end(),
                         [&](const auto& choice) { return choice.first == text; });
    };
    shorthand.is_switch = has("true");
    shorthand.has_negation = has("true") && has("false");
    shorthand.is_written_for_gpus = shorthand.name == "precision";
    shorthand.note = word.note;
    shorthands_.push_back(std::move(shorthand));
  }
}

const Group* Table::find_group(const std::string& name) const {
  for (const Group& group : groups_) {
    if (group.name == name) return &group;
  }
  return nullptr;
}

std::string Table::expand(const std::string& name, const std::string& text, std::vector<Assignment>& assignments) {
  if (Row* row = find(name)) {
    int64_t number = 0;
    const bool counts =
        row->counted_alias == kebab(name) && !row->counted_alias.empty() &&
        read_integer(text, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), number).empty();
    assignments.push_back({row, !counts ? text : number > 0 ? text + row->counted_unit : row->counted_none});
    return "";
  }
  const Shorthand* shorthand = find_shorthand(name);
  if (!shorthand) return "unknown option";
  std::vector<std::string> words;
  bool counts = false;
  for (const auto& [pattern, values] : shorthand->choices) {
    const bool is_number = pattern == "N" || pattern == "I";
    counts = counts || is_number;
    if (!is_number) words.push_back(pattern);
    if (!fits_pattern(pattern, kebab(text))) continue;
    for (const auto& [option, value] : values) assignments.push_back({find(option), filled_in(value, text)});
    return "";
  }
  int64_t ignored = 0;
  if (counts) return read_integer(text, 1, std::numeric_limits<int64_t>::max(), ignored);
  size_t index = 0;
  return find_choice(text, words, index);
}

std::string in_small_letters(const Row& row, const std::string& text) {
  const std::string small = core::lower_case(text);
  const bool is_number_word = row.is_number && small == "auto";
  const bool is_switch_word = row.is_switch && (small == "true" || small == "false" || small == "auto");
  const bool is_listed = std::find(row.choices.begin(), row.choices.end(), small) != row.choices.end();
  return is_number_word || is_switch_word || is_listed ? small : text;
}

std::string Table::set(Row& row, const std::string& text, const Origin& origin) {
  const bool hidden = row.origin.kind > origin.kind;
  const std::string before = hidden ? row.render() : "";
  const char* const home = std::getenv("HOME");
  const bool is_in_home = home != nullptr && text.rfind("~/", 0) == 0;
  const std::string problem = row.assign(is_in_home ? home + text.substr(1) : in_small_letters(row, text));
  if (!problem.empty()) return problem;
  if (hidden) {
    row.assign(row.default_text);
    row.assign(before);
  } else {
    row.origin = origin;
  }
  return "";
}

std::vector<std::string> Table::all_names() const {
  std::vector<std::string> names;
  for (const Row& row : rows_) {
    names.push_back(row.name);
    for (const std::string& alias : row.aliases) {
      if (alias.size() > 1) names.push_back(alias);
    }
  }
  for (const Shorthand& shorthand : shorthands_) names.push_back(shorthand.name);
  return names;
}

}  // namespace stoker::config
