// SPDX-License-Identifier: Apache-2.0
// --help as plain text, 100 columns, from the table and the commands.
#include <algorithm>
#include <string>
#include <vector>

#include "config/config.h"
#include "config/render/describe.h"

namespace stoker::config {
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
  for (const Word& word : chosen.words) {
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
    append_entry(out, flag_text(*row), first_sentence(row->help) + " [" + row->render() + "]");
  }
}

void append_group(std::string& out, const Table& table, const Group& group, const Syntax& chosen) {
  std::string entries;
  for (const Row& row : table.rows()) {
    if (row.group == group.name && !row.is_expert && chosen.takes(row)) {
      append_entry(entries, flag_text(row), row.help + " [" + value_text(row) + "]" + alias_text(row));
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
      "Usage: train [options]\n\n"
      "Trains a network; the same command resumes an interrupted run.\n\n"
      "Examples:\n"
      "  train --data-dir photos                   photos/train/CLASS/*.jpg, photos/val/CLASS/*.jpg\n"
      "  train --data-dir photos --val-fraction 0.1    photos/CLASS/*.jpg\n"
      "  train --data-dir photos --model resnet18 --init-from resnet18.pth --epochs 20 --lr 0.01\n"
      "  train eval runs/photos\n"
      "  train predict runs/photos new/*.jpg\n\n"
      "Other commands, each with its own --help:\n";
  append_commands(text, commands, /*in_short=*/true);
  append_usual(text, table);
  append_entry(text, "-c, --config FILE", "YAML file with options");
  append_entry(text, "--preset NAME", "options that are built in (train list presets)");
  append_entry(text, "--dry-run, --print-config", "check all, or show every option, and exit");
  append_entry(text, "-v, --verbose", "say what was chosen and why");
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
