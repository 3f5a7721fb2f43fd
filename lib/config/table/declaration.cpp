// SPDX-License-Identifier: Apache-2.0
#include "config/table/declaration.h"

namespace stoker::config {

RowDraft& RowDraft::alias(std::initializer_list<const char*> names) {
  row().aliases.insert(row().aliases.end(), names.begin(), names.end());
  return *this;
}

RowDraft& RowDraft::counted_alias(const char* name) {
  row().counted_alias = name;
  return alias({name});
}

RowDraft& RowDraft::unit(const std::string& text) {
  row().unit = text;
  return *this;
}

RowDraft& RowDraft::help(const std::string& text) {
  row().help = text;
  return *this;
}

RowDraft& RowDraft::placeholder(const std::string& text) {
  row().placeholder = text;
  return *this;
}

RowDraft& RowDraft::takes_list() {
  row().takes_list = true;
  return *this;
}

RowDraft& RowDraft::free_on_resume() {
  row().training_relevant = false;
  return *this;
}

RowDraft& RowDraft::used_while(std::function<bool()> is_used) {
  row().is_used = std::move(is_used);
  return *this;
}

RowDraft& RowDraft::before_it_existed(const std::string& text) {
  row().before_it_existed = text;
  return *this;
}

RowDraft& RowDraft::per_process() {
  row().per_process = true;
  return free_on_resume();
}

RowDraft& RowDraft::used_in_eval() {
  row().in_eval = true;
  return *this;
}

RowDraft& RowDraft::used_in_pack() {
  row().in_pack = true;
  return *this;
}

RowDraft& RowDraft::used_in_inference() {
  row().in_eval = row().in_predict = true;
  return *this;
}

void Declaration::group(const std::string& name, const std::string& title) { table_.groups_.push_back({name, title}); }

RowDraft Declaration::append(Row row) {
  row.group = table_.groups_.back().name;
  row.default_text = row.render();
  table_.rows_.push_back(std::move(row));
  return RowDraft(table_.rows_, table_.rows_.size() - 1);
}

Shorthand& Declaration::add_shorthand(const std::string& name, const std::string& help,
                                      std::vector<std::pair<std::string, Shorthand::Values>> choices,
                                      Shorthand::OtherTexts others) {
  Shorthand shorthand;
  shorthand.name = name;
  shorthand.group = table_.groups_.back().name;
  shorthand.is_switch = choices.size() == 1 && choices.front().first == "true";
  shorthand.choices = std::move(choices);
  shorthand.others = others;
  shorthand.help = help;
  table_.shorthands_.push_back(std::move(shorthand));
  return table_.shorthands_.back();
}

void Declaration::add_foreign(const std::string& group, const std::string& name, const std::string& help,
                              const std::string& note, std::vector<std::pair<std::string, Shorthand::Values>> choices) {
  Shorthand& shorthand = add_shorthand(name, help, std::move(choices));
  shorthand.group = group;
  shorthand.takes_count = shorthand.choices.empty();
  shorthand.note = note;
}

void Declaration::add_removed(const std::string& group, const std::string& name, const std::string& help,
                              const std::string& note) {
  add_foreign(group, name, help, note, {{"true", {}}, {"false", {}}, {"auto", {}}});
  table_.shorthands_.back().is_switch = table_.shorthands_.back().was_option = true;
}

std::string Declaration::automatic_advice(const std::string& text, bool is_number) {
  if (!is_number) return "";
  return text == "-1" ? "; -1 does not mean automatic, write auto" : "; auto is accepted too";
}

}  // namespace stoker::config
