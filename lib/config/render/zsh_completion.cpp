// SPDX-License-Identifier: Apache-2.0
#include "config/read/verbs.h"
#include "config/render/completable.h"

namespace stoker::config {
namespace {

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

}  // namespace

std::string zsh_completion(const Table& table, const std::vector<std::string>& networks) {
  std::string text =
      "#compdef train\n"
      "# Completion of train in zsh; written by `train completion zsh`.\n"
      "_train() {\n  local -a verbs specs\n  verbs=(\n";
  for (const Verb& verb : verbs()) {
    if (!verb.name.empty()) text += "    '" + verb.name + ":" + described(verb.summary) + "'\n";
  }
  text += "  )\n  case ${words[2]} in\n";
  for (const Verb& verb : verbs()) {
    text += "    " + (verb.name.empty() ? std::string("*") : verb.name) + ")\n      specs=(\n";
    for (const CompletableFlag& flag : completable_flags(table, verb.name, networks)) {
      for (const std::string& name : flag.names) text += "        " + specification(flag, name) + "\n";
    }
    text += "      ) ;;\n";
  }
  // The first pattern that fits counts, so that of the verb "" must be the last.
  const size_t begin = text.find("    *)\n"), end = text.find(" ;;\n", begin) + 4;
  const std::string training = text.substr(begin, end - begin);
  text.erase(begin, end - begin);
  text += training;
  text +=
      "  esac\n"
      "  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then _describe verb verbs; return; fi\n"
      "  _arguments -S $specs '*:file:_files'\n"
      "}\n"
      "_train \"$@\"\n";
  return text;
}

}  // namespace stoker::config
