// SPDX-License-Identifier: Apache-2.0
// A command of the program: what it is called, what it takes, what it does.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/read/syntax.h"
#include "train/outcome.h"

namespace stoker::train {

/// The inputs of a command besides its own flags.
struct Context {
  int argc = 0;
  const char* const* argv = nullptr;  ///< arguments of main
  config::CommandLine line;           ///< for parsing its options once more, over those of a checkpoint
  config::Configuration& configuration;
};

/// Flags and words are bound to a struct that lives as long as the command.
struct Command : config::Syntax {
  std::function<Outcome(const Context& context)> run;  ///< empty: not in this program, but in stoker-train
  std::shared_ptr<void> owner;                         ///< owner of the struct that flags and words are bound to
  /// Does what follows every end of the command, its failures included; empty: nothing.
  std::function<void(const Context& context, const Outcome& outcome)> at_end;
};

/// The command `train NAME USAGE`, or `train USAGE` where the name is empty, that runs with the flags that its command
/// line fills. Functions that need LibTorch are declared weak: null in the program `train`, which is linked without
/// them and becomes stoker-train.
template <typename Flags>
Command make_command(const std::string& name, const std::string& usage, const std::string& summary,
                     Outcome (*run)(const Context&, const Flags&), const std::shared_ptr<Flags>& flags) {
  Command command;
  command.name = name;
  command.usage = "train " + (name.empty() ? "" : name + " ") + usage;
  command.summary = summary;
  command.owner = flags;
  if (run != nullptr) command.run = [run, flags](const Context& context) { return run(context, *flags); };
  return command;
}

/// The word that names what eval, predict, export and inspect work on.
inline config::Argument checkpoint_argument(std::string& into) {
  return config::argument("RUN_OR_CHECKPOINT", "Run directory, or one checkpoint directory of it.", into);
}
/// Every option but those of a run directory.
inline bool takes_all_but_run(const config::Row& row) { return row.group != "run"; }

/// All commands, that which trains first. Each is named in registry.cpp alone.
std::vector<Command> all_commands();

/// The command that the first words of a command line name.
struct ChosenCommand {
  const Command* command = nullptr;  ///< one of `commands`
  std::vector<std::string> words;    ///< behind its name
  std::string mistake = "";          ///< what is wrong with the first word: it was not the name; to be reported
};
/// Names of older programs throw Error{usage} with the new one, no word at all one with the first steps. A word that is
/// not a name is taken for the command that was probably meant; one that is none for a word of training.
ChosenCommand choose_command(const std::vector<Command>& commands, int argc, const char* const* argv);

}  // namespace stoker::train
