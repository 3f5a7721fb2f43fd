// SPDX-License-Identifier: Apache-2.0
// docs/options.md, from the table and the commands.
#include <algorithm>
#include <string>
#include <vector>

#include "config/config.h"
#include "config/render/describe.h"
#include "core/text/json.h"

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
    if (command->arguments.empty() && command->flags.empty()) continue;
    out += "\n" + table_line({"word or flag", "meaning"}) + table_line({"---", "---"});
    for (const Argument& word : command->arguments) out += table_line({code(word.name), cell(word.help)});
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
    "- `auto` is chosen from the machine or the data; the start-up banner and `--print-config` have the value and "
    "why. `-1`\n"
    "  never means auto.\n"
    "- Switches: `--tf32`, `--no-tf32`; in YAML `true` or `false`, also written `True` or `TRUE`, and nothing else.\n"
    "- Several values have commas between them: `--scale 0.08,1`, in YAML `[0.08, 1]`. Those in brackets may be left "
    "out.\n"
    "- Old names give an error with the new one; runs that were stored with them open.\n"
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

// A JSON schema of YAML files, by which editors complete and check them. The program itself reads more strictly.

namespace {

using core::Json;

/// A word of a choice as YAML may read it: `16` as a number, `true` as a truth value.
void add_choice(const std::string& word, Json& choices) {
  choices.push_back(word);
  const Json value = Json::parse(word, /*callback=*/nullptr, /*allow_exceptions=*/false);
  if (value.is_number() || value.is_boolean()) choices.push_back(value);
}

Json schema_of(Row& row) {
  Json schema;
  const bool takes_auto = row.assign("auto").empty();  // of a table that nothing else reads
  if (row.is_switch && row.choices.empty()) {
    schema = takes_auto ? Json{{"enum", {true, false, "auto"}}} : Json{{"type", "boolean"}};
  } else if (!row.choices.empty()) {
    schema["enum"] = Json::array();
    for (const std::string& choice : row.choices) add_choice(choice, schema["enum"]);
    if (row.is_switch) schema["enum"].insert(schema["enum"].end(), {true, false});
    if (takes_auto && std::count(row.choices.begin(), row.choices.end(), "auto") == 0) schema["enum"].push_back("auto");
  } else if (row.is_list || row.has_parts) {
    schema["type"] = {"array", "number", "string"};
  } else if (row.is_number && !takes_auto) {
    schema["type"] = "number";
  } else {
    schema["type"] = {"string", "number"};
  }
  schema["description"] = row.help + " [" + value_text(row) + "]";
  return schema;
}

}  // namespace

std::string render_schema() {
  Configuration scratch;
  Json properties = Json::object();
  for (const Group& group : scratch.table.groups()) {
    Json inside = Json::object();
    const auto add = [&](const std::string& name, const Json& schema) {
      inside[name] = {{"$ref", "#/properties/" + name}};
      properties[name] = schema;
    };
    for (Row& row : scratch.table.rows()) {
      if (row.group != group.name) continue;
      add(row.name, schema_of(row));
      for (const std::string& alias : row.aliases) {
        if (alias.size() > 1) add(alias, {{"$ref", "#/properties/" + row.name}});
      }
    }
    // An option may have the name of a group.
    if (!properties.contains(group.name)) {
      properties[group.name] = {{"type", "object"},
                                {"description", group.title},
                                {"properties", inside},
                                {"patternProperties", {{"_", Json::object()}}},
                                {"additionalProperties", false}};
    }
  }
  const Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                       {"title", "Configuration of train"},
                       {"type", "object"},
                       {"properties", properties},
                       {"patternProperties", {{"_", Json::object()}}},  // `_` is accepted for `-` in every name
                       {"additionalProperties", false}};
  return schema.dump(1) + "\n";
}

// train.1, the manual page, in the macros of man(7).

namespace {

/// Text that groff prints as it is: its backslashes, its minus, and lines that would begin a request.
std::string plain(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    const bool begins_line = escaped.empty() || escaped.back() == '\n';
    if (begins_line && (c == '.' || c == '\'')) escaped += "\\&";
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

void append_tagged(std::string& out, const std::string& head, const std::string& text) {
  out += ".TP\n.B " + plain(head) + "\n" + plain(text) + "\n";
}

void append_option(std::string& out, const Row& row) {
  append_tagged(out, flag_text(row), row.help + " [" + value_text(row) + "]" + alias_text(row));
}

}  // namespace

std::string render_man(const Table& table, const Commands& commands, const std::string& version) {
  std::string text = ".TH TRAIN 1 \"\" \"Stoker " + version + "\" \"User Commands\"\n";
  text += ".SH NAME\ntrain \\- train image networks, and use what was trained\n.SH SYNOPSIS\n.nf\n";
  for (const Syntax* const command : commands) text += ".B " + plain(command->usage) + "\n";
  text += ".fi\n.SH COMMANDS\n";
  for (const Syntax* const command : commands) {
    append_tagged(text, command->shown_name(), command->summary);
    text += ".RS\n";
    for (const Argument& word : command->arguments) append_tagged(text, word.name, word.help);
    for (const Flag& flag : command->flags) {
      if (!flag.help.empty()) append_tagged(text, flag_text(flag), flag.help);
    }
    text += ".RE\n";
  }
  text += ".SH FLAGS OF THE COMMAND LINE\n";
  CommonFlags unused;
  for (const Flag& flag : common_flags(*commands.front(), unused)) append_tagged(text, flag_text(flag), flag.help);
  text +=
      ".SH OPTIONS\nEvery option is a flag and a key of YAML files; a flag goes before a file, a file before a "
      "preset.\n";
  for (const Group& group : table.groups()) {
    text += ".SS " + plain(group.title) + "\n";
    for (const Row& row : table.rows()) {
      if (row.group == group.name && !row.is_expert) append_option(text, row);
    }
  }
  text += ".SS " + plain(kExpertTitle) + "\n";
  for (const Row& row : table.rows()) {
    if (row.is_expert) append_option(text, row);
  }
  text += ".SH EXIT STATUS\n";
  for (const auto& [code, meaning] : {std::pair{"0", "done"},
                                      {"64", "the command line is wrong"},
                                      {"65", "data or a checkpoint is wrong"},
                                      {"66", "a named input does not exist"},
                                      {"69", "a device or library is not there"},
                                      {"74", "input or output failed, or the disk is full"},
                                      {"75", "stopped on request: the same command continues"},
                                      {"78", "the configuration is invalid, or does not match the resumed run"},
                                      {"80", "training diverged"},
                                      {"81", "memory ran out"},
                                      {"82", "another process holds the run directory"},
                                      {"130", "interrupted from the keyboard"}}) {
    append_tagged(text, code, meaning);
  }
  return text;
}

}  // namespace stoker::config
