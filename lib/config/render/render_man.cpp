// SPDX-License-Identifier: Apache-2.0
// train.1, the manual page, in the macros of man(7).
#include <string>

#include "config/config.h"
#include "config/render/describe.h"

namespace stoker::config {
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
    for (const Word& word : command->words) append_tagged(text, word.name, word.help);
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
                                      {"75", "stopped on request: the same command goes on"},
                                      {"78", "the configuration is wrong"},
                                      {"80", "training diverged"},
                                      {"81", "memory ran out"},
                                      {"82", "another process holds the run directory"},
                                      {"130", "interrupted from the keyboard"}}) {
    append_tagged(text, code, meaning);
  }
  return text;
}

}  // namespace stoker::config
