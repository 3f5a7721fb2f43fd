// SPDX-License-Identifier: Apache-2.0
// The verbs of the program and the flags that are no options: what --help lists besides the table.
// A new verb is one entry here, and its flags.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "config/config.h"

namespace stoker::config {

/// A word that stands without a flag, such as RUN_OR_CHECKPOINT.
struct Positional {
  std::string name;
  std::string help;
  std::function<void(CommandLine&, const std::string&)> store;
  bool is_optional = false;
  bool repeats = false;  ///< takes all words that are left; only the last positional of a verb can
};

struct Verb {
  std::string name;                     ///< "" trains
  std::string usage;                    ///< "train eval RUN_OR_CHECKPOINT [options]"
  std::string summary;                  ///< one sentence
  std::vector<Positional> positionals;  ///< optional ones last
};

/// A flag of the command line itself: it has no YAML key and no origin.
struct CommandFlag {
  std::string name;                  ///< long name without dashes
  std::vector<std::string> aliases;  ///< one letter: a short flag
  std::string placeholder;           ///< empty: a switch
  std::vector<std::string> choices;
  std::vector<std::string> verbs;                               ///< that accept it
  std::string help;                                             ///< empty: not shown in --help
  std::function<void(CommandLine&, const std::string&)> store;  ///< a switch gets "true"
};

const std::vector<Verb>& verbs();
const std::vector<CommandFlag>& command_flags();
/// Those of one verb alone, for command_flags().
std::vector<CommandFlag> make_pack_flags();
std::vector<CommandFlag> make_audit_flags();
std::vector<CommandFlag> make_replay_flags();
/// Those of `train plan` alone.
std::vector<CommandFlag> make_plan_flags();
/// The flags of `train import` alone.
std::vector<CommandFlag> make_import_flags();
/// The flags of `train export` alone.
std::vector<CommandFlag> make_export_flags();
/// nullptr when unknown.
const Verb* find_verb(const std::string& name);
bool accepts(const CommandFlag& flag, const std::string& verb);
/// Whether a verb takes an option at all: training takes all of them.
bool accepts(const Row& row, const std::string& verb);
bool accepts(const Table& table, const Shorthand& shorthand, const std::string& verb);

}  // namespace stoker::config
