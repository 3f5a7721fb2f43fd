// SPDX-License-Identifier: Apache-2.0
#include "config/read/verbs.h"
#include "config/render/completable.h"

namespace stoker::config {
namespace {

std::string quoted(const std::string& text) {
  std::string escaped = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped + "'";
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

void append_flag(std::string& out, const std::string& condition, const CompletableFlag& flag) {
  out += "complete -c train -n " + condition;
  for (const std::string& name : flag.names) {
    out += name.size() == 2 ? " -s " + name.substr(1) : " -l " + name.substr(2);
  }
  if (flag.takes_value) out += flag.is_path ? " -r -F" : " -x";
  if (!flag.values.empty()) out += " -a " + quoted(joined(flag.values));
  out += " -d " + quoted(flag.help) + "\n";
}

}  // namespace

std::string fish_completion(const Table& table, const std::vector<std::string>& networks) {
  std::string text = "# Completion of train in fish; written by `train completion fish`.\n";
  std::vector<std::string> names;
  for (const Verb& verb : verbs()) {
    if (!verb.name.empty()) names.push_back(verb.name);
  }
  const std::string any_verb = "__fish_seen_subcommand_from " + joined(names);
  for (const Verb& verb : verbs()) {
    const bool trains = verb.name.empty();
    if (!trains) {
      text += "complete -c train -f -n '__fish_is_first_arg' -a " + verb.name + " -d " + quoted(verb.summary) + "\n";
    }
    const std::string condition = trains ? "'not " + any_verb + "'" : "'__fish_seen_subcommand_from " + verb.name + "'";
    for (const CompletableFlag& flag : completable_flags(table, verb.name, networks))
      append_flag(text, condition, flag);
  }
  return text;
}

}  // namespace stoker::config
