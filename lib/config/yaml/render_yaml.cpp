// SPDX-License-Identifier: Apache-2.0
// Options as YAML that -c reads back: the run's config.yaml and --print-config, and how resolved options travel.
#include <algorithm>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "config/config.h"
#include "config/resolution.h"
#include "config/table/parse_value.h"
#include "core/error.h"
#include "core/format.h"

namespace stoker::config {
namespace {

/// Text that YAML readers take as it stands, and for nothing else than text.
bool is_plain_yaml(const std::string& text) {
  const auto is_plain_char = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || std::string_view("_./+-").find(c) != std::string_view::npos;
  };
  if (text.empty() || text[0] == '-' || !std::all_of(text.begin(), text.end(), is_plain_char)) return false;
  const std::string lower = core::lower_case(text);
  return lower != "null" && lower.find_first_not_of('.') != std::string::npos;
}

std::string yaml_string(const std::string& text) {
  if (is_plain_yaml(text)) return text;
  std::string escaped = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped + "\"";
}

std::string yaml_value(const Row& row) {
  const std::string text = row.render();
  if (row.is_list) return text == "auto" ? text : text == "none" ? "[]" : "[" + text + "]";
  if (row.has_parts && text.find(',') != std::string::npos) {
    std::string list;
    for (const std::string& part : split_words(text, ',')) list += (list.empty() ? "" : ", ") + yaml_string(part);
    return "[" + list + "]";
  }
  if (row.is_number || row.is_switch) return text;
  return yaml_string(text);
}

std::string origin_text(const Origin& origin) {
  switch (origin.kind) {
    case Origin::Kind::built_in: return "default";
    case Origin::Kind::resolved: return "auto: " + origin.detail;
    case Origin::Kind::run:
    case Origin::Kind::preset:
    case Origin::Kind::file:
    case Origin::Kind::flag: return origin.detail;
  }
  return "";
}

}  // namespace

std::string render_yaml(const Table& table, bool with_origin) {
  constexpr size_t kCommentColumn = 44;
  std::string yaml;
  for (const Group& group : table.groups()) {
    yaml += group.name + ":\n";
    for (const Row& row : table.rows()) {
      if (row.group != group.name) continue;
      std::string line = "  " + row.name + ": " + yaml_value(row);
      const bool is_log_of_command = row.name == "log-file" && row.origin.kind == Origin::Kind::flag;
      if (is_log_of_command && !is_log_of_run(row.render(), table.find("run-dir")->render())) {
        line = "  # " + line.substr(2);  // which no file may name
      }
      if (with_origin) {
        line.resize(std::max(line.size() + 1, kCommentColumn), ' ');
        line += "# " + core::printable(origin_text(row.origin));
      }
      yaml += line + "\n";
    }
  }
  return yaml;
}

std::string render_yaml(const Configuration& given, const Resolution& resolution) {
  Options shown = given.options;
  Table table(shown);
  ResolvedOptions options = resolution.options;
  const Table resolved(options);
  for (size_t i = 0; i < table.rows().size(); ++i) {
    Row& row = table.rows()[i];
    row.origin = given.table.rows()[i].origin;
    const auto& assumed = resolution.assumed;
    if (std::find(assumed.begin(), assumed.end(), row.name) != assumed.end()) continue;
    row.assign(resolved.rows()[i].render());
    const auto choice = std::find_if(resolution.choices.begin(), resolution.choices.end(),
                                     [&](const Choice& chosen) { return chosen.option == row.name; });
    if (choice != resolution.choices.end()) row.origin = {Origin::Kind::resolved, choice->reason};
  }
  return render_yaml(table, /*with_origin=*/true);
}

std::string render_yaml(const ResolvedOptions& options) {
  ResolvedOptions copy = options;
  return render_yaml(Table(copy), /*with_origin=*/false);
}

ResolvedOptions read_resolved_yaml(const std::string& text, const std::string& path) {
  ResolvedOptions options;
  Table table(options);
  std::vector<std::string> problems;
  read_yaml(text, path, Origin::Kind::file, table, problems);
  for (const Row& row : table.rows()) {
    if (row.origin.kind != Origin::Kind::file)
      problems.push_back(core::printable(path) + ": " + row.name + " is missing");
  }
  if (problems.empty()) return options;
  std::string message = "resolved options cannot be read:";
  for (const std::string& problem : problems) message += "\n  " + problem;
  throw core::Error(core::ErrorKind::config, message, "both sides must be the same version of this program");
}

void take_over(const ResolvedOptions& resolved, Configuration& given) {
  ResolvedOptions copy = resolved;
  const Table theirs(copy);
  for (size_t i = 0; i < theirs.rows().size(); ++i) {
    Row& own = given.table.rows()[i];
    if (own.per_process && !own.is_auto()) continue;
    given.table.set(own, theirs.rows()[i].render(), {Origin::Kind::resolved, "rank 0"});
  }
}

std::vector<std::pair<std::string, std::string>> given_training_options(const Configuration& given) {
  std::vector<std::pair<std::string, std::string>> options;
  for (const Row& row : given.table.rows()) {
    if (row.training_relevant) options.emplace_back(row.name, row.render());
  }
  return options;
}

std::vector<TrainingOption> training_relevant_values(const ResolvedOptions& options) {
  std::vector<TrainingOption> values;
  ResolvedOptions copy = options;
  const Table table(copy);
  for (const Row& row : table.rows()) {
    if (!row.training_relevant || (row.is_used && !row.is_used())) continue;
    values.push_back({row.name, row.render(), row.value_in_older_runs});
  }
  return values;
}

}  // namespace stoker::config
