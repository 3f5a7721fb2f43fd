// SPDX-License-Identifier: Apache-2.0
#include "config/render/describe.h"

#include <algorithm>
#include <string>
#include <vector>

#include "config/config.h"
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

std::string value_text(const Row& row, bool of_run) {
  const std::string accepted = stand_beside_flag(row.choices) ? row.unit : accepted_text(row);
  return (accepted.empty() ? "" : accepted + "; ") + "default" +
         (of_run ? ": that of the run" : " " + default_value_text(row));
}

std::string alias_text(const Row& row) {
  std::string text;
  for (const std::string& alias : row.aliases) {
    if (alias.size() > 1) text += (text.empty() ? "--" : ", --") + alias;
  }
  return text.empty() ? "" : " Also " + text + ".";
}

std::string default_value_text(const Row& row) {
  if (!row.shown_default.empty()) return row.shown_default;
  const bool is_empty = row.default_text.find_first_not_of(',') == std::string::npos;
  return is_empty ? "none" : row.default_text;
}

// --help as plain text, 100 columns, from the table and the commands.

namespace {

constexpr size_t kColumns = 100;
constexpr size_t kHelpColumn = 34;

/// Appends `text` broken at blanks, every line from `indent` on.
void append_wrapped(std::string& out, const std::string& text, size_t indent) {
  size_t column = indent;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const size_t length = end - begin;
    if (column > indent && column + 1 + length > kColumns) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out.append(text, begin, length);
    column += length;
    begin = end + 1;
  }
  out += '\n';
}

void append_entry(std::string& out, const std::string& left, const std::string& right) {
  std::string first = "  " + left;
  if (first.size() + 2 > kHelpColumn) {
    out += first + "\n" + std::string(kHelpColumn, ' ');
  } else {
    first.resize(kHelpColumn, ' ');
    out += first;
  }
  append_wrapped(out, right, kHelpColumn);
}

std::string first_sentence(const std::string& text) {
  std::string first = text.substr(0, std::min(text.find(';'), text.find(". ")));
  if (!first.empty() && first.back() == '.') first.pop_back();
  return first;
}

/// Those with a name; of "inspect replay" and "inspect diff" only "inspect".
void append_commands(std::string& out, const Commands& commands, bool in_short) {
  std::string before;
  for (const Syntax* const command : commands) {
    const std::string first = command->first_word();
    if (first.empty() || first == before) continue;
    before = first;
    append_entry(out, first, in_short ? first_sentence(command->summary) : command->summary);
  }
}

std::string usage_of(const Commands& commands, const Syntax& chosen) {
  std::string text = "Usage: " + chosen.usage + "\n\n" + chosen.summary + "\n";
  if (chosen.name.empty()) {
    text += "\nOther commands, each with its own --help:\n";
    append_commands(text, commands, /*in_short=*/false);
  }
  for (const Syntax* const part : commands) {
    if (chosen.name.empty() || part->name.rfind(chosen.name + " ", 0) != 0) continue;
    text += text.find("\n  ") == std::string::npos ? "\n" : "";
    append_entry(text, part->name.substr(chosen.name.size() + 1), part->summary);
  }
  for (const Argument& word : chosen.arguments) {
    text += text.find("\n  ") == std::string::npos ? "\n" : "";
    append_entry(text, word.name, word.help);
  }
  return text;
}

void append_usual(std::string& out, const Table& table) {
  out += "\nThe usual options (--help-all lists every one):\n";
  for (const char* const name :
       {"data-dir",        "val-fraction", "model",  "init-from",    "img-size", "batch-size", "accumulation-steps",
        "epochs",          "opt",          "lr",     "weight-decay", "sched",    "hflip",      "mixup-alpha",
        "label-smoothing", "amp",          "device", "num-workers",  "run-dir",  "resume",     "seed"}) {
    const Row* const row = table.find(name);
    append_entry(out, flag_text(*row), first_sentence(row->help) + " [" + default_value_text(*row) + "]");
  }
}

void append_group(std::string& out, const Table& table, const Group& group, const Syntax& chosen) {
  std::string entries;
  const bool has_run = !chosen.arguments.empty() && chosen.arguments.front().name.rfind("RUN", 0) == 0;
  const bool of_run = has_run && group.name != "device" && group.name != "run" && group.name != "log";
  for (const Row& row : table.rows()) {
    if (row.group == group.name && !row.is_expert && chosen.takes(row)) {
      append_entry(entries, flag_text(row), row.help + " [" + value_text(row, of_run) + "]" + alias_text(row));
    }
  }
  if (!entries.empty()) out += "\n" + group.title + " (" + group.name + "):\n" + entries;
}

void append_experts(std::string& out, const Table& table) {
  out += std::string("\n") + kExpertTitle + " (each below its group):\n";
  for (const Row& row : table.rows()) {
    if (!row.is_expert) continue;
    append_entry(out, flag_text(row), row.help + " [" + row.group + "; " + value_text(row) + "]" + alias_text(row));
  }
}

}  // namespace

std::string render_short_help(const Table& table, const Commands& commands) {
  std::string text =
      "Usage: train [options]\n"
      "       train COMMAND ...\n\n"
      "Trains a network; the same command resumes an interrupted run.\n\n"
      "Examples:\n"
      "  train --data-dir photos                       photos/train/CLASS/*.jpg, photos/val/CLASS/*.jpg\n"
      "  train --data-dir photos --val-fraction 0.1    photos/CLASS/*.jpg\n"
      "  train --data-dir photos --model resnet18 --pretrained --epochs 20 --lr 0.01\n"
      "  train eval runs/photos\n"
      "  train predict runs/photos new/*.jpg\n\n"
      "Other commands, each with its own --help:\n";
  append_commands(text, commands, /*in_short=*/true);
  append_usual(text, table);
  append_entry(text, "-c, --config FILE", "YAML file with options");
  append_entry(text, "--preset NAME", "built-in options (train list presets)");
  append_entry(text, "--dry-run, --print-config", "check everything, or print every option, and exit");
  append_entry(text, "-v, --verbose", "log why each value was chosen");
  return text;
}

std::string render_help(const Table& table, const Commands& commands, const Syntax& chosen) {
  std::string text = usage_of(commands, chosen);
  text += "\nCommand:\n";
  CommonFlags unused;
  for (const std::vector<Flag>& flags : {chosen.flags, common_flags(chosen, unused)}) {
    for (const Flag& flag : flags) {
      if (!flag.help.empty()) append_entry(text, flag_text(flag), flag.help);
    }
  }
  for (const Group& group : table.groups()) append_group(text, table, group, chosen);
  if (chosen.name.empty()) append_experts(text, table);
  const bool takes_options =
      std::any_of(table.rows().begin(), table.rows().end(), [&](const Row& row) { return chosen.takes(row); });
  if (!takes_options) return text;
  text +=
      "\nEvery option is also a YAML key for --config, flat or below the group in parentheses.\n"
      "Order of precedence: defaults < preset < config files in order < flags.\n";
  return text;
}

std::string render_option_list(const Table& table) {
  std::string text;
  for (const Row& row : table.rows()) {
    std::string name = "--" + row.name;
    name.resize(std::max(name.size(), kHelpColumn - 2), ' ');
    text += name + "  " + first_sentence(row.help) + " [" + default_value_text(row) + "]\n";
  }
  return text;
}

}  // namespace stoker::config
