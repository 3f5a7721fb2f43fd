// SPDX-License-Identifier: Apache-2.0
// Scripts that complete the command line in bash, zsh and fish.
#include <algorithm>

#include "config/config.h"
#include "config/read/syntax.h"
#include "core/error.h"

namespace stoker::config {
namespace {

struct CompletableFlag {
  std::vector<std::string> names;  ///< with dashes: "--batch-size", "-b"; of a switch "--no-amp" as well
  bool takes_value = false;
  std::vector<std::string> values;  ///< that are known
  bool is_path = false;
  std::string help;  ///< one line without a full stop
};

/// The commands with one first word: "inspect replay" and "inspect diff" are two parts of one.
struct CompletableCommand {
  std::string name;  ///< empty: trains
  std::string summary;
  std::vector<std::string> parts;
  std::vector<CompletableFlag> flags;
};

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

CompletableFlag flag_of(const Flag& command, const std::vector<std::string>& networks) {
  CompletableFlag flag;
  flag.names.push_back("--" + command.name);
  add_names(command.aliases, flag);
  flag.takes_value = !command.is_switch();
  flag.values = command.name == "preset" ? preset_names() : command.name == "model" ? networks : command.choices;
  flag.is_path = flag.values.empty() && is_path(command.placeholder);
  flag.help = short_help(command.help);
  return flag;
}

void add_flags(const Table& table, const Syntax& command, const std::vector<std::string>& networks,
               std::vector<CompletableFlag>& flags) {
  const auto add = [&flags](CompletableFlag flag) {
    const auto is_same = [&](const CompletableFlag& known) { return known.names == flag.names; };
    if (std::none_of(flags.begin(), flags.end(), is_same)) flags.push_back(std::move(flag));
  };
  CommonFlags unused;
  for (const std::vector<Flag>& own : {command.flags, common_flags(command, unused)}) {
    for (const Flag& flag : own) {
      if (!flag.help.empty()) add(flag_of(flag, networks));
    }
  }
  for (const Row& row : table.rows()) {
    if (!command.takes(row) || row.is_expert) continue;
    CompletableFlag flag = flag_of(row, networks);
    if (row.is_switch && !row.choices.empty()) {  // alone it is a switch, too; its negation takes no value
      CompletableFlag negation = flag;
      negation.names = {"--no-" + row.name};
      negation.values.clear();
      flag.names.erase(flag.names.begin() + 1);
      flag.takes_value = true;
      add(std::move(negation));
    }
    add(std::move(flag));
  }
}

std::vector<CompletableCommand> completable(const Table& table, const Commands& commands,
                                            const std::vector<std::string>& networks) {
  std::vector<CompletableCommand> all;
  for (const Syntax* const command : commands) {
    const std::string& whole = command->name;
    const std::string name = command->first_word();
    if (all.empty() || all.back().name != name) all.push_back({name, command->summary, {}, {}});
    if (name != whole) all.back().parts.push_back(whole.substr(name.size() + 1));
    add_flags(table, *command, networks, all.back().flags);
  }
  return all;
}

std::string joined(const std::vector<std::string>& words, const char* separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

std::string names_of(const std::vector<CompletableCommand>& commands, const char* separator) {
  std::vector<std::string> names;
  for (const CompletableCommand& command : commands) {
    if (!command.name.empty()) names.push_back(command.name);
  }
  return joined(names, separator);
}

// bash

/// The values that may follow a flag, and which words begin with a dash.
void append_bash(std::string& out, const CompletableCommand& command) {
  std::vector<std::string> names, paths, free;
  std::string cases;
  for (const CompletableFlag& flag : command.flags) {
    names.insert(names.end(), flag.names.begin(), flag.names.end());
    if (!flag.takes_value) continue;
    std::vector<std::string>& others = flag.is_path ? paths : free;
    if (flag.values.empty()) {
      others.insert(others.end(), flag.names.begin(), flag.names.end());
    } else {
      cases += "        " + joined(flag.names, "|") + ") values='" + joined(flag.values, " ") + "' ;;\n";
    }
  }
  out += "    " + (command.name.empty() ? std::string("''") : command.name) + ")\n";
  out += "      flags='" + joined(names, " ") + "'\n";
  if (!command.parts.empty()) out += "      parts='" + joined(command.parts, " ") + "'\n";
  out += "      case $flag in\n" + cases;
  if (!paths.empty()) out += "        " + joined(paths, "|") + ") kind=path ;;\n";
  if (!free.empty()) out += "        " + joined(free, "|") + ") kind=free ;;\n";
  out += "      esac ;;\n";
}

constexpr const char* kBashBegin =
    "# Completion of train in bash; written by `train list completion bash`.\n"
    "_train() {\n"
    "  local parts='' cur=${COMP_WORDS[COMP_CWORD]} flag=${COMP_WORDS[COMP_CWORD-1]} command='' flags='' values='' "
    "kind='' word\n"
    "  if [[ $cur == = ]]; then cur=''; elif [[ $flag == = ]]; then flag=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
    "  [[ $COMP_CWORD -gt 1 ]] && case ${COMP_WORDS[1]} in\n";

constexpr const char* kBashEnd =
    "  esac\n"
    "  if [[ -n $values ]]; then\n"
    "    mapfile -t COMPREPLY < <(compgen -W \"$values\" -- \"$cur\")\n"
    "  elif [[ $kind == free ]]; then\n"
    "    COMPREPLY=()\n"
    "  elif [[ $cur == -* && -z $kind ]]; then\n"
    "    mapfile -t COMPREPLY < <(compgen -W \"$flags\" -- \"$cur\")\n"
    "  else\n"
    "    compopt -o filenames 2>/dev/null\n"
    "    mapfile -t COMPREPLY < <({\n"
    "      [[ $COMP_CWORD -eq 1 ]] && compgen -W \"$commands\" -- \"$cur\"\n"
    "      [[ $COMP_CWORD -eq 2 ]] && compgen -W \"$parts\" -- \"$cur\"\n"
    "      if [[ -z $kind && $COMP_CWORD -gt 1 ]]; then  # runs\n"
    "        for word in \"$cur\"*/ runs/\"${cur#runs/}\"*/; do\n"
    "          [[ -e ${word}checkpoints ]] && printf '%s\\n' \"${word%/}\"\n"
    "        done\n"
    "      fi\n"
    "      [[ $COMP_CWORD -gt 1 ]] && compgen -f -- \"$cur\"\n"
    "    } | sort -u)\n"
    "  fi\n"
    "}\n"
    "complete -F _train train\n";

std::string bash_completion(const std::vector<CompletableCommand>& commands) {
  std::string text = kBashBegin;
  text += "    " + names_of(commands, "|") + ") command=${COMP_WORDS[1]} ;;\n  esac\n";
  text += "  local commands='" + names_of(commands, " ") + "'\n";
  text += "  case $command in\n";
  for (const CompletableCommand& command : commands) append_bash(text, command);
  return text + kBashEnd;
}

// zsh

/// For the inside of '...[here]...': what ends a quotation or a description.
std::string described(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\'') {
      escaped += "'\\''";
    } else {
      if (c == '[' || c == ']' || c == ':' || c == '\\') escaped += '\\';
      escaped += c;
    }
  }
  return escaped;
}

std::string specification(const CompletableFlag& flag, const std::string& name) {
  std::string text = "'" + name + (flag.takes_value ? "=" : "") + "[" + described(flag.help) + "]";
  if (name.size() == 2) text = "'" + name + "[" + described(flag.help) + "]";
  if (!flag.takes_value) return text + "'";
  text += ":value:";
  if (!flag.values.empty()) {
    text += "(";
    for (size_t i = 0; i < flag.values.size(); ++i) text += (i == 0 ? "" : " ") + described(flag.values[i]);
    text += ")";
  } else if (flag.is_path) {
    text += "_files";
  }
  return text + "'";
}

std::string zsh_completion(const std::vector<CompletableCommand>& commands) {
  std::string text =
      "#compdef train\n"
      "# Completion of train in zsh; written by `train list completion zsh`.\n"
      "_train() {\n  local -a commands specs parts\n  commands=(\n";
  for (const CompletableCommand& command : commands) {
    if (!command.name.empty()) text += "    '" + command.name + ":" + described(command.summary) + "'\n";
  }
  text += "  )\n  case ${words[2]} in\n";
  std::string training;  // the first pattern that fits counts: that of training must be the last
  for (const CompletableCommand& command : commands) {
    std::string one = "    " + (command.name.empty() ? std::string("*") : command.name) + ")\n";
    if (!command.parts.empty()) one += "      parts=(" + joined(command.parts, " ") + ")\n";
    one += "      specs=(\n";
    for (const CompletableFlag& flag : command.flags) {
      for (const std::string& name : flag.names) one += "        " + specification(flag, name) + "\n";
    }
    one += "      ) ;;\n";
    (command.name.empty() ? training : text) += one;
  }
  return text + training +
         "  esac\n"
         "  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then _describe command commands; return; fi\n"
         "  if (( CURRENT == 3 && $#parts )); then compadd -a parts; fi\n"
         "  _arguments -S $specs '*:file:_files'\n"
         "}\n"
         "_train \"$@\"\n";
}

// fish

std::string quoted(const std::string& text) {
  std::string escaped = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped + "'";
}

void append_fish(std::string& out, const std::string& condition, const CompletableFlag& flag) {
  out += "complete -c train -n " + condition;
  for (const std::string& name : flag.names) {
    out += name.size() == 2 ? " -s " + name.substr(1) : " -l " + name.substr(2);
  }
  if (flag.takes_value) out += flag.is_path ? " -r -F" : " -x";
  if (!flag.values.empty()) out += " -a " + quoted(joined(flag.values, " "));
  out += " -d " + quoted(flag.help) + "\n";
}

std::string fish_completion(const std::vector<CompletableCommand>& commands) {
  std::string text = "# Completion of train in fish; written by `train list completion fish`.\n";
  const std::string any = "__fish_seen_subcommand_from " + names_of(commands, " ");
  for (const CompletableCommand& command : commands) {
    const bool trains = command.name.empty();
    const std::string seen = "__fish_seen_subcommand_from " + command.name;
    if (!trains) {
      text +=
          "complete -c train -f -n '__fish_is_first_arg' -a " + command.name + " -d " + quoted(command.summary) + "\n";
    }
    if (!command.parts.empty()) {
      text += "complete -c train -f -n '" + seen + "' -a " + quoted(joined(command.parts, " ")) + "\n";
    }
    for (const CompletableFlag& flag : command.flags)
      append_fish(text, "'" + (trains ? "not " + any : seen) + "'", flag);
  }
  return text;
}

}  // namespace

std::vector<std::string> completion_shells() { return {"bash", "zsh", "fish"}; }

std::string render_completion(const Table& table, const Commands& commands, const std::string& shell,
                              const std::vector<std::string>& networks) {
  const std::vector<CompletableCommand> all = completable(table, commands, networks);
  if (shell == "bash") return bash_completion(all);
  if (shell == "zsh") return zsh_completion(all);
  if (shell == "fish") return fish_completion(all);
  throw core::Error(core::ErrorKind::usage, "no completion for this shell", "write bash, zsh or fish");
}

}  // namespace stoker::config
