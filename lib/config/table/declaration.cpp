// SPDX-License-Identifier: Apache-2.0
#include "config/table/declaration.h"

#include "config/table/parse_value.h"

namespace stoker::config {

RowDraft& RowDraft::alias(std::initializer_list<const char*> names) {
  rows_[index_].aliases.insert(rows_[index_].aliases.end(), names.begin(), names.end());
  return *this;
}

void Declaration::group(const std::string& name, const std::string& title) { table_.groups_.push_back({name, title}); }

RowDraft Declaration::append(Row row) {
  row.group = table_.groups_.back().name;
  row.default_text = row.render();
  table_.rows_.push_back(std::move(row));
  return RowDraft(table_.rows_, table_.rows_.size() - 1);
}

RowDraft Declaration::add_own(const std::string& name, const std::vector<const void*>& fields,
                              std::function<std::string(const std::string& text)> assign,
                              std::function<std::string()> render) {
  Row row;
  row.name = name;
  row.field = fields.front();
  row.more_fields.assign(fields.begin() + 1, fields.end());
  row.assign = std::move(assign);
  row.render = std::move(render);
  row.is_auto = [] { return false; };
  return append(std::move(row));
}

RowDraft Declaration::add_parts(const std::string& name, const std::vector<Part>& parts, size_t needed, bool* is_on) {
  std::vector<const void*> fields;
  std::string placeholder, brackets, accepted;
  for (const Part& part : parts) {
    const bool is_optional = fields.size() >= needed;
    placeholder += (is_optional ? "[," : fields.empty() ? "" : ",") + part.name;
    brackets += is_optional ? "]" : "";
    if (!part.accepted.empty()) accepted += (accepted.empty() ? "" : "; ") + part.name + " " + part.accepted;
    fields.push_back(part.field);
  }
  const auto render = [parts, is_on] {
    if (is_on && !*is_on) return std::string("off");
    std::string text;  // all of them: a stored run does not depend on what is usual
    for (size_t i = 0; i < parts.size(); ++i) text += (i == 0 ? "" : ",") + parts[i].render();
    return text;
  };
  const auto assign_parts = [parts, needed, usage = placeholder + brackets](const std::string& text) {
    const std::vector<std::string> words = split_words(text, ',');
    if (words.size() < needed || words.size() > parts.size()) return shown(text) + " is not accepted; write " + usage;
    for (size_t i = 0; i < parts.size(); ++i) {
      const std::string problem = parts[i].assign(i < words.size() ? words[i] : parts[i].default_text);
      if (!problem.empty()) return words.size() == 1 ? problem : parts[i].name + ": " + problem;
    }
    return std::string();
  };
  const auto assign = [assign_parts, render, is_on](const std::string& text) {
    const std::string before = render();
    if (is_on && (text == "off" || text == "false" || text == "on" || text == "true")) {
      *is_on = text == "on" || text == "true";
      return std::string();
    }
    std::string problem = assign_parts(text);
    if (!problem.empty() && before != "off") assign_parts(before);
    if (problem.empty() && is_on) *is_on = true;
    return problem + (problem.empty() || !is_on ? "" : ", or off");
  };
  const RowDraft draft = add_own(name, fields, assign, render);
  Row& row = table_.rows_.back();
  row.has_parts = true;
  row.placeholder = placeholder + brackets + (is_on ? "|off" : "");
  row.range = accepted;
  return draft;
}

std::string Declaration::automatic_advice(const std::string& text, bool is_number) {
  if (!is_number) return "";
  return text == "-1" ? "; -1 does not mean automatic, write auto" : "; auto is accepted too";
}

}  // namespace stoker::config
