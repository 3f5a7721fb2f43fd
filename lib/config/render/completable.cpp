// SPDX-License-Identifier: Apache-2.0
#include "config/render/completable.h"

#include <algorithm>

#include "config/read/verbs.h"
#include "core/error.h"

namespace stoker::config {
namespace {

bool is_path(const std::string& placeholder) {
  for (const char* const kind : {"FILE", "DIR", "FOLDER", "PATH", "RUN_OR_CHECKPOINT"}) {
    if (placeholder.find(kind) != std::string::npos) return true;
  }
  return false;
}

/// Up to the first full stop or semicolon, without what shells would take for syntax.
std::string short_help(const std::string& help) {
  std::string text = help.substr(0, std::min(help.find(". "), help.find(';')));
  if (!text.empty() && text.back() == '.') text.pop_back();
  text.erase(std::remove_if(text.begin(), text.end(), [](char c) { return c == '\n' || c == '`'; }), text.end());
  return text;
}

void add_names(const std::vector<std::string>& aliases, CompletableFlag& flag) {
  for (const std::string& alias : aliases) flag.names.push_back((alias.size() == 1 ? "-" : "--") + alias);
}

CompletableFlag flag_of(const Row& row, const std::vector<std::string>& networks) {
  CompletableFlag flag;
  flag.names.push_back("--" + row.name);
  if (row.is_switch) flag.names.push_back("--no-" + row.name);
  add_names(row.aliases, flag);
  flag.takes_value = !row.is_switch;
  flag.values = row.name == "model" || row.name == "backbone" ? networks : row.choices;
  flag.is_path = row.choices.empty() && is_path(row.placeholder);
  flag.help = short_help(row.help);
  return flag;
}

CompletableFlag flag_of(const CommandFlag& command, const std::vector<std::string>& networks) {
  CompletableFlag flag;
  flag.names.push_back("--" + command.name);
  add_names(command.aliases, flag);
  flag.takes_value = !command.placeholder.empty() || !command.choices.empty();
  flag.values = command.name == "preset" ? preset_names() : command.name == "model" ? networks : command.choices;
  flag.is_path = flag.values.empty() && is_path(command.placeholder);
  flag.help = short_help(command.help);
  return flag;
}

}  // namespace

std::vector<CompletableFlag> completable_flags(const Table& table, const std::string& verb,
                                               const std::vector<std::string>& networks) {
  std::vector<CompletableFlag> flags;
  for (const CommandFlag& command : command_flags()) {
    if (!command.help.empty() && accepts(command, verb)) flags.push_back(flag_of(command, networks));
  }
  for (const Row& row : table.rows()) {
    if (accepts(row, verb)) flags.push_back(flag_of(row, networks));
  }
  for (const Shorthand& shorthand : table.shorthands()) {
    if (!accepts(table, shorthand, verb) || shorthand.was_option) continue;
    CompletableFlag flag;
    flag.names.push_back("--" + shorthand.name);
    flag.takes_value = !shorthand.is_switch;
    for (const auto& choice : shorthand.choices) flag.values.push_back(choice.first);
    flag.help = short_help(shorthand.help);
    flags.push_back(flag);
  }
  return flags;
}

std::vector<std::string> completion_shells() { return {"bash", "zsh", "fish"}; }

std::string render_completion(const Table& table, const std::string& shell, const std::vector<std::string>& networks) {
  if (shell == "bash") return bash_completion(table, networks);
  if (shell == "zsh") return zsh_completion(table, networks);
  if (shell == "fish") return fish_completion(table, networks);
  throw core::Error(core::ErrorKind::usage, "no completion for this shell", "bash, zsh and fish have one");
}

}  // namespace stoker::config
