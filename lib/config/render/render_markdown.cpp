// SPDX-License-Identifier: Apache-2.0
// docs/options.md, from the table and the commands.
#include <string>
#include <vector>

#include "config/config.h"
#include "config/render/describe.h"

namespace stoker::config {
namespace {

/// `|` would end a table cell.
std::string cell(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string code(const std::string& text) { return "`" + cell(text) + "`"; }

std::string table_line(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& text : cells) line += " " + text + " |";
  return line + "\n";
}

void append_flags(std::string& out, const std::vector<Flag>& flags) {
  for (const Flag& flag : flags) {
    if (flag.help.empty()) continue;
    std::string meaning = flag.help;
    for (const std::string& alias : flag.aliases) {
      if (alias.size() > 1) meaning += " Also `--" + alias + "`.";
    }
    out += table_line({code(flag_text(flag)), cell(meaning)});
  }
}

void append_commands(std::string& out, const Commands& commands) {
  out += "\n## Commands\n\nThe flags of all commands, and of those that read options or open networks:\n\n";
  out += table_line({"flag", "meaning"}) + table_line({"---", "---"});
  CommonFlags unused;
  append_flags(out, common_flags(*commands.front(), unused));
  for (const Syntax* const command : commands) {
    out += "\n### " + command->shown_name() + "\n\n`" + command->usage + "`\n\n" + command->summary + "\n";
    if (command->words.empty() && command->flags.empty()) continue;
    out += "\n" + table_line({"word or flag", "meaning"}) + table_line({"---", "---"});
    for (const Word& word : command->words) out += table_line({code(word.name), cell(word.help)});
    append_flags(out, command->flags);
  }
}

void append_row(std::string& out, const Row& row) {
  std::string name = code(flag_text(row));
  for (const std::string& alias : row.aliases) {
    if (alias.size() > 1) name += ", `--" + alias + "`";
  }
  const std::string group = row.is_expert ? " Group `" + row.group + "`." : "";
  const std::string note = row.training_relevant ? "" : " *May change on resume.*";
  out += table_line({name, cell(accepted_text(row)), code(default_value_text(row)), cell(row.help) + group + note});
}

/// `group`: nullptr for the options that few should touch.
void append_section(std::string& out, const Table& table, const Group* group) {
  out += "\n## " + (group ? group->name + ": " + group->title : std::string(kExpertTitle)) + "\n\n";
  out += table_line({"option", "accepted", "default", "meaning"}) + table_line({"---", "---", "---", "---"});
  for (const Row& row : table.rows()) {
    if (group ? row.group == group->name && !row.is_expert : row.is_expert) append_row(out, row);
  }
}

const char* const kIntroduction =
    "# Options\n\n"
    "This page is written by `train list options --format markdown > docs/options.md`; a test fails when it is out of "
    "date.\n\n"
    "- Every option is a flag (`--batch-size 64`) and a YAML key (`batch-size: 64`), flat or below its "
    "group\n"
    "  (`loader: {batch-size: 64}`). `_` is accepted for `-`. Aliases work in both places; names of two "
    "letters work\n"
    "  with one dash too (`-vb 256`).\n"
    "- Precedence: built-in value < preset < config files in order < flags. Of a repeated flag the last one "
    "counts; a key\n"
    "  that stands twice in one file is an error.\n"
    "- `auto` is chosen from the machine or the data; the start-up banner and `--print-config` say what and "
    "why. `-1`\n"
    "  never means auto.\n"
    "- Switches: `--tf32`, `--no-tf32`; in YAML `true` or `false`, also written `True` or `TRUE`, and nothing else.\n"
    "- Several values have commas between them: `--scale 0.08,1`, in YAML `[0.08, 1]`. Those in brackets may be left "
    "out.\n"
    "- Names of older versions are answered with today's; runs that were stored with them open.\n"
    "- Numbers are decimal and finite, without leading zeros. Lists: `--mean 0.1,0.2,0.3`, in YAML `[0.1, "
    "0.2, 0.3]`.\n"
    "- Intervals have a unit: `1e` (epochs), `2000u` (optimizer updates), `30s`, `10m`, `2h`, `1d`, or "
    "`never`. Durations:\n"
    "  `600s`, `90m`, `10h`, `2d`, or `0` for no limit.\n"
    "- Files are one YAML document in UTF-8 of at most 1 MB, without anchors, aliases, merge keys and tags.\n"
    "- Options marked *May change on resume* are free; a change of any other is refused on resume (exit code "
    "78) unless\n"
    "  `--override-resume` is given.\n";

}  // namespace

std::string render_markdown(const Table& table, const Commands& commands) {
  std::string text = kIntroduction;
  append_commands(text, commands);
  for (const Group& group : table.groups()) append_section(text, table, &group);
  append_section(text, table, nullptr);
  text += "\n## Presets\n\n";
  for (const std::string& name : preset_names()) text += "- `" + name + "` (configs/" + name + ".yaml)\n";
  return text;
}

}  // namespace stoker::config
