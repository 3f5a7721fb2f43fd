// SPDX-License-Identifier: Apache-2.0
// Assigns a YAML text to the table: flat keys or keys below their group, nothing unknown, nothing twice.
#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "config/config.h"
#include "config/table/foreign_words.h"
#include "config/table/parse_value.h"
#include "config/yaml/foreign_yaml.h"
#include "config/yaml/yaml_tree.h"
#include "core/error.h"
#include "core/format.h"

namespace stoker::config {
namespace {

/// A file of nonsense must not fill the screen, or the time to look for near names.
constexpr size_t kMaxProblems = 100;

/// Headings in files of other trainers below which any option may stand.
bool is_foreign_group(const std::string& name) {
  return name == "training" || name == "optimization" || name == "trainer";
}

/// YAML writes each of these in three ways.
std::string yaml_switch(const std::string& text) {
  static const std::set<std::string> kWords = {"true", "false", "on", "off", "auto", "none"};
  const std::string lower = core::lower_case(text);
  if (kWords.count(lower) == 0) return text;
  const bool is_upper = std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isupper(c); });
  const bool is_title = std::isupper(static_cast<unsigned char>(text[0])) != 0 && text.substr(1) == lower.substr(1);
  return is_upper || is_title ? lower : text;
}

std::string text_of(const YamlNode& value) {
  std::string text = value.text;
  for (const YamlNode& item : value.items) text += (text.empty() ? "" : ",") + item.text;
  return value.kind == YamlNode::Kind::list && text.empty() ? "none" : text;
}

/// The configuration of a run of an older program: what has old names stands behind the rest under today's.
void rewrite_old_names(YamlNode& top) {
  std::vector<YamlNode*> maps;  // what is nested before what holds it
  for (size_t i = 1; top.kind == YamlNode::Kind::map && i < top.items.size(); i += 2) {
    if (top.items[i].kind == YamlNode::Kind::map) maps.push_back(&top.items[i]);
  }
  if (top.kind == YamlNode::Kind::map) maps.push_back(&top);
  OptionTexts texts;
  std::map<std::string, int> lines;
  for (const YamlNode* const map : maps) {
    for (size_t i = 0; i + 1 < map->items.size(); i += 2) {
      if (map->items[i + 1].kind == YamlNode::Kind::map) continue;
      texts[kebab(map->items[i].text)] = text_of(map->items[i + 1]);
      lines[kebab(map->items[i].text)] = map->items[i].line;
    }
  }
  std::vector<std::string> old;
  const std::vector<RenamedOption> renamed = renamed_options(texts);
  for (const RenamedOption& option : renamed) old.insert(old.end(), option.old.begin(), option.old.end());
  for (YamlNode* const map : maps) {
    std::vector<YamlNode> kept;
    for (size_t i = 0; i + 1 < map->items.size(); i += 2) {
      const bool is_old = map->items[i + 1].kind != YamlNode::Kind::map &&
                          std::find(old.begin(), old.end(), kebab(map->items[i].text)) != old.end();
      if (!is_old) kept.insert(kept.end(), {map->items[i], map->items[i + 1]});
    }
    map->items = std::move(kept);
  }
  for (const RenamedOption& option : renamed) {
    if (!option.now.empty()) append_entry(top, option.now, yaml_words(option.text, lines[option.old.front()]));
  }
}

class YamlAssigner {
 public:
  YamlAssigner(const std::string& path, Origin::Kind kind, const std::vector<std::string>& flags, Table& table,
               std::vector<YamlProblem>& problems)
      : path_(path), kind_(kind), flags_(flags), table_(table), names_(table.all_names()), problems_(problems) {}

  void read_top(const YamlNode& top) {
    if (top.kind != YamlNode::Kind::map) {
      report(top.line, "the top level must be a mapping of option names to values");
      return;
    }
    for_each_entry(top, [this](const YamlNode& key, const YamlNode& value) {
      const Group* group = table_.find_group(key.text);
      if (group && value.kind == YamlNode::Kind::map) {
        read_group(*group, key, value);
      } else if (value.kind == YamlNode::Kind::map && is_foreign_group(key.text)) {
        for_each_entry(value, [&](const YamlNode& inner, const YamlNode& of) { read_option(nullptr, inner, of); });
      } else {
        read_option(nullptr, key, value);
      }
    });
  }

 private:
  template <typename Visit>
  void for_each_entry(const YamlNode& map, Visit visit) {
    for (size_t i = 0; i + 1 < map.items.size() && problems_.size() <= kMaxProblems; i += 2) {
      const YamlNode& key = map.items[i];
      if (key.refused) continue;
      if (key.kind != YamlNode::Kind::scalar || key.text.empty()) {
        report(key.line, "a key must be the name of an option or a group");
      } else if (key.text == "<<" && !key.quoted) {
        report(key.line, "merge keys (<<) are not supported; give several files with -c instead");
      } else {
        visit(key, map.items[i + 1]);
      }
    }
  }

  void read_group(const Group& group, const YamlNode& key, const YamlNode& map) {
    const auto [seen, is_new] = group_lines_.emplace(group.name, key.line);
    if (!is_new) {
      report(key.line, core::format("{}: this group already stands in line {}", group.name, seen->second));
    }
    for_each_entry(map, [&](const YamlNode& inner, const YamlNode& value) { read_option(&group, inner, value); });
  }

  /// `group` is where the key stands; nullptr is the top level.
  void read_option(const Group* group, const YamlNode& key, const YamlNode& value) {
    const Row* row = table_.find(key.text);
    if (key.text.size() == 1 || (!row && !table_.find_shorthand(key.text))) {
      report_unknown(group, key, value);
      return;
    }
    if (group && row && group->name != row->group) {
      report(key.line, core::format("{}: belongs in group {}, not in {}", key.text, row->group, group->name));
      return;
    }
    if (value.refused) return;
    std::string text;
    const std::string problem = text_of(row, value, text);
    if (!problem.empty()) {
      report(value.kind == YamlNode::Kind::null ? key.line : value.line, key.text + ": " + problem);
      return;
    }
    assign(key, text);
  }

  void assign(const YamlNode& key, const std::string& text) {
    std::vector<Assignment> assignments;
    const std::string unknown = table_.expand(key.text, text, assignments);
    if (!unknown.empty()) report(key.line, key.text + ": " + unknown);
    table_.note_use(key.text, {kind_, core::format("{}:{}", path_, key.line)});
    for (const Assignment& assignment : assignments) {
      const auto [seen, is_new] = row_lines_.emplace(assignment.row, key.line);
      // `amp: true` beside `amp-dtype: float16` is the same setting.
      const bool is_refined = assignment.row->is_switch && !assignment.row->choices.empty() &&
                              (assignment.text == "true" || assignment.row->render() == "on");
      if (!is_new && !is_refined) {
        const std::string again = assignment.row->name == kebab(key.text) ? "" : " (as " + assignment.row->name + ")";
        report(key.line, core::format("{}: already set in line {}{}", key.text, seen->second, again));
        continue;
      }
      const Origin origin{kind_, core::format("{}:{}", path_, key.line)};
      const std::string problem = table_.set(*assignment.row, assignment.text, origin);
      if (!problem.empty()) report(key.line, key.text + ": " + problem);
    }
  }

  /// The text that the row's parser reads; `row` is nullptr for a shorthand.
  std::string text_of(const Row* row, const YamlNode& value, std::string& text) {
    const bool is_list = row && row->is_list;
    switch (value.kind) {
      case YamlNode::Kind::null: return "no value given";
      case YamlNode::Kind::map: return "takes a single value, not a mapping";
      case YamlNode::Kind::list:
        if (!is_list && !(row && (row->takes_list || row->has_parts))) return "takes a single value, not a list";
        return list_text_of(*row, value, text);
      case YamlNode::Kind::scalar: break;
    }
    text = value.text;
    const bool has_words = !row || row->is_switch || !row->choices.empty();
    if (!value.quoted && has_words) text = yaml_switch(text);
    if (is_list && text != row->default_text) return "takes a list, such as [0.5, 0.25]";
    const std::string word = core::lower_case(text);
    const bool is_typed =
        row && !row->takes_list && (row->is_number || (row->is_switch && (word == "true" || word == "false")));
    if (is_typed && value.quoted && text != "auto") return shown(text) + " is in quotes, which makes it text";
    return "";
  }

  static std::string list_text_of(const Row& row, const YamlNode& list, std::string& text) {
    for (const YamlNode& item : list.items) {
      const bool is_quoted = item.quoted && !row.has_parts;
      if (item.kind != YamlNode::Kind::scalar || is_quoted || item.text.find(',') != std::string::npos) {
        return "takes a list of plain numbers";
      }
      text += (text.empty() ? "" : ",") + item.text;
    }
    if (list.items.empty()) text = row.default_text;
    if (list.items.size() == 1 && row.takes_list) text += ",";
    return "";
  }

  void report_unknown(const Group* group, const YamlNode& key, const YamlNode& value) {
    if (const std::string answer = old_name_hint(key.text, /*is_flag=*/false); !answer.empty()) {
      report(key.line, key.text + " " + answer);
      return;
    }
    if (!group && table_.find_group(key.text)) {
      report(key.line, key.text + " is a group: its options go below it, indented");
      return;
    }
    if (std::find(flags_.begin(), flags_.end(), kebab(key.text)) != flags_.end()) {
      report(key.line, core::format("{0}: stands on the command line alone: --{0}", kebab(key.text)));
      return;
    }
    std::vector<std::string> candidates = names_;
    if (!group && value.kind == YamlNode::Kind::map) {
      for (const Group& known : table_.groups()) candidates.push_back(known.name);
    }
    const std::string nearest = near_name(kebab(key.text), candidates);
    report(key.line, "unknown option " + shown(key.text) +
                         (nearest.empty() ? "" : "; did you mean " + nearest + in_group(group, nearest) + "?"));
  }

  /// " (group optim)" when the nearest name would stand elsewhere.
  std::string in_group(const Group* group, const std::string& name) const {
    const Row* row = static_cast<const Table&>(table_).find(name);
    return group && row && row->group != group->name ? " (group " + row->group + ")" : "";
  }

  void report(int line, std::string text) { problems_.push_back({line, std::move(text)}); }

  const std::string& path_;
  const Origin::Kind kind_;
  const std::vector<std::string>& flags_;
  Table& table_;
  const std::vector<std::string> names_;
  std::vector<YamlProblem>& problems_;
  std::map<std::string, int> group_lines_;
  std::map<const Row*, int> row_lines_;
};

}  // namespace

void read_yaml(const std::string& text, const std::string& path, Origin::Kind kind, Table& table,
               std::vector<std::string>& problems) {
  std::vector<std::string> notes;
  read_yaml_with_notes(text, path, kind, {}, table, problems, notes);
}

void read_yaml_with_notes(const std::string& text, const std::string& path, Origin::Kind kind,
                          const std::vector<std::string>& flags, Table& table, std::vector<std::string>& problems,
                          std::vector<std::string>& notes) {
  const std::string shown_path = core::printable(path);
  std::vector<YamlProblem> found;
  YamlNode top = parse_yaml(text, found);
  std::vector<std::string> found_notes;
  if (kind == Origin::Kind::file) rewrite_foreign(top, found, found_notes);
  if (kind == Origin::Kind::run) rewrite_old_names(top);
  for (const std::string& note : found_notes) notes.push_back(shown_path + ": " + note);
  const bool nothing_read = top.kind == YamlNode::Kind::null && !found.empty();
  if (!nothing_read) YamlAssigner(shown_path, kind, flags, table, found).read_top(top);
  std::stable_sort(found.begin(), found.end(),
                   [](const YamlProblem& a, const YamlProblem& b) { return a.line < b.line; });
  const size_t reported = std::min(found.size(), kMaxProblems);
  for (size_t i = 0; i < reported; ++i) {
    problems.push_back(core::format("{}:{}: {}", shown_path, found[i].line, found[i].text));
  }
  if (found.size() > reported) problems.push_back(shown_path + ": more problems follow");
}

void read_run_config(const std::string& text, const std::string& path, Configuration& configuration) {
  Configuration run;
  std::vector<std::string> problems;
  read_yaml(text, path, Origin::Kind::run, run.table, problems);
  for (size_t i = 0; i < run.table.rows().size() && problems.empty(); ++i) {
    const Row& theirs = run.table.rows()[i];
    if (theirs.per_process || theirs.origin.kind != Origin::Kind::run) continue;
    configuration.table.set(configuration.table.rows()[i], theirs.render(), theirs.origin);
  }
  if (problems.empty()) return;
  std::string message = "the configuration of the run cannot be used:";
  for (const std::string& problem : problems) message += "\n  " + problem;
  throw core::Error(core::ErrorKind::config, message, "config.yaml was written by this program; restore it");
}

}  // namespace stoker::config
