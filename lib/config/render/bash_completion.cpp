// SPDX-License-Identifier: Apache-2.0
#include "config/read/verbs.h"
#include "config/render/completable.h"

namespace stoker::config {
namespace {

std::string joined(const std::vector<std::string>& words, const char* separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

/// What may follow a flag with a value, and which words begin with a dash.
void append_verb(std::string& out, const Table& table, const std::string& verb,
                 const std::vector<std::string>& networks) {
  std::vector<std::string> names, paths, free;
  std::string cases;
  for (const CompletableFlag& flag : completable_flags(table, verb, networks)) {
    names.insert(names.end(), flag.names.begin(), flag.names.end());
    if (!flag.takes_value) continue;
    std::vector<std::string>& others = flag.is_path ? paths : free;
    if (flag.values.empty()) {
      others.insert(others.end(), flag.names.begin(), flag.names.end());
    } else {
      cases += "        " + joined(flag.names, "|") + ") values='" + joined(flag.values, " ") + "' ;;\n";
    }
  }
  out += "    " + (verb.empty() ? std::string("''") : verb) + ")\n";
  out += "      flags='" + joined(names, " ") + "'\n";
  out += "      case $flag in\n" + cases;
  if (!paths.empty()) out += "        " + joined(paths, "|") + ") kind=path ;;\n";
  if (!free.empty()) out += "        " + joined(free, "|") + ") kind=free ;;\n";
  out += "      esac ;;\n";
}

constexpr const char* kBegin =
    "# Completion of train in bash; written by `train completion bash`.\n"
    "_train() {\n"
    "  local cur=${COMP_WORDS[COMP_CWORD]} flag=${COMP_WORDS[COMP_CWORD-1]} verb='' flags='' values='' kind='' word\n"
    "  if [[ $cur == = ]]; then cur=''; elif [[ $flag == = ]]; then flag=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
    "  [[ $COMP_CWORD -gt 1 ]] && case ${COMP_WORDS[1]} in\n";

constexpr const char* kEnd =
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
    "      [[ $COMP_CWORD -eq 1 ]] && compgen -W \"$verbs\" -- \"$cur\"\n"
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

}  // namespace

std::string bash_completion(const Table& table, const std::vector<std::string>& networks) {
  std::string text = kBegin;
  std::vector<std::string> names;
  for (const Verb& verb : verbs()) {
    if (!verb.name.empty()) names.push_back(verb.name);
  }
  text += "    " + joined(names, "|") + ") verb=${COMP_WORDS[1]} ;;\n  esac\n";
  text += "  local verbs='" + joined(names, " ") + "'\n";
  text += "  case $verb in\n";
  for (const Verb& verb : verbs()) append_verb(text, table, verb.name, networks);
  return text + kEnd;
}

}  // namespace stoker::config
