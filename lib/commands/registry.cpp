// SPDX-License-Identifier: Apache-2.0
// Every command of the program, and what its names have been.
#include <map>

#include "commands/audit/audit.h"
#include "commands/bench/bench.h"
#include "commands/check/check.h"
#include "commands/command.h"
#include "commands/eval/eval.h"
#include "commands/export/export.h"
#include "commands/import/import.h"
#include "commands/inspect/inspect.h"
#include "commands/list/list.h"
#include "commands/pack/pack.h"
#include "commands/plan/plan.h"
#include "commands/predict/predict.h"
#include "commands/preview/preview.h"
#include "commands/runs/runs.h"
#include "commands/train/train.h"
#include "config/table/parse_value.h"
#include "config/table/suggest.h"
#include "core/error.h"
#include "core/format.h"

namespace stoker::train {
namespace {

core::Error wrong(const std::string& message, const std::string& hint) {
  return {core::ErrorKind::usage, message, hint};
}

/// Of older programs, with what does the same now.
const std::map<std::string, std::string>& former_names() {
  static const std::map<std::string, std::string> names = {{"ls", "runs"},
                                                           {"watch", "runs --follow"},
                                                           {"report", "runs --html"},
                                                           {"replay", "inspect replay"},
                                                           {"verify", "inspect verify"},
                                                           {"diff", "inspect diff"},
                                                           {"blame", "inspect blame"},
                                                           {"models", "list models"},
                                                           {"presets", "list presets"},
                                                           {"completion", "list completion"}};
  return names;
}

std::vector<std::string> first_words(const std::vector<Command>& commands) {
  std::vector<std::string> names;
  for (const Command& command : commands) {
    const std::string first = command.first_word();
    if (!first.empty() && (names.empty() || names.back() != first)) names.push_back(first);
  }
  return names;
}

const Command* find(const std::vector<Command>& commands, const std::string& name) {
  for (const Command& command : commands) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

core::Error unknown(const std::vector<Command>& commands, const std::string& name) {
  const auto former = former_names().find(name);
  if (former != former_names().end()) {
    return wrong(core::format("train {} is now train {}", name, former->second),
                 core::format("train {} --help", former->second.substr(0, former->second.find(" --"))));
  }
  const std::vector<std::string> names = first_words(commands);
  const std::string nearest = config::suggestion(name, names);
  return wrong("unknown command " + config::shown(name) + nearest,
               "commands: " + core::list_text(names, names.size()) + "; none trains");
}

}  // namespace

std::vector<Command> all_commands() {
  return {train_command(),   eval_command(),    predict_command(), plan_command(),   check_command(), bench_command(),
          pack_command(),    preview_command(), import_command(),  export_command(), audit_command(), runs_command(),
          inspect_command(), replay_command(),  verify_command(),  diff_command(),   blame_command(), list_command()};
}

ChosenCommand choose_command(const std::vector<Command>& commands, int argc, const char* const* argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (!words.empty() && words[0] == "help") {  // train help eval
    words.erase(words.begin());
    words.push_back("--help");
  }
  const auto is_name = [](const std::string& word) { return !word.empty() && word[0] != '-'; };
  if (words.empty() || !is_name(words[0])) return {&commands.front(), words};
  if (words.size() > 1) {
    const Command* const part = find(commands, words[0] + " " + words[1]);
    if (part != nullptr) return {part, {words.begin() + 2, words.end()}};
  }
  const Command* const command = find(commands, words[0]);
  if (command == nullptr) throw unknown(commands, words[0]);
  return {command, {words.begin() + 1, words.end()}};
}

}  // namespace stoker::train
