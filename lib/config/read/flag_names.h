// SPDX-License-Identifier: Apache-2.0
// Every name that a command line may hold: flags of the command and of all commands, options, shorthands.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/read/syntax.h"

namespace stoker::config {

/// The meaning of a registered name.
struct FlagTarget {
  std::string option;          ///< row, alias or shorthand; empty for a flag of the command itself
  const Flag* flag = nullptr;  ///< flag of the command or of all commands; null: an option
  bool is_own = false;         ///< true for a flag of the command, false for one of all commands
  bool is_switch = false;
  bool negated = false;  ///< `--no-x`
  std::string written;
  std::vector<std::string> words;  ///< values of a switch besides true and false

  /// Behind a switch these words are its value: `--amp auto`. Others are words of their own.
  bool has_value(const std::string& word) const;
};

bool begins_long_flag(const std::string& word);

class FlagNames {
 public:
  FlagNames(const CommandLine& line, const Table& table, CommonFlags& common);
  FlagNames& operator=(FlagNames&&) = delete;  // not copied, not moved

  const std::map<std::string, FlagTarget>& all() const { return by_name_; }  ///< without dashes
  std::vector<std::string> long_names() const;
  /// The target of `--name`, `--name=value` or `-x`; nullptr for anything else.
  const FlagTarget* target_of(const std::string& word) const;
  /// `_` becomes `-` in names, `-vb` becomes `--vb`.
  std::string with_canonical_dashes(const std::string& word) const;
  /// Where a flag that this command does not take would be accepted.
  std::string commands_with(const std::string& name) const;

 private:
  void add_option(const std::string& name, const std::vector<std::string>& aliases, bool is_switch, bool has_negation,
                  const std::vector<std::string>& words);
  void add(const std::string& name, const std::vector<std::string>& aliases, FlagTarget target);

  const CommandLine& line_;
  const Syntax& syntax_;
  const std::vector<Flag> common_;
  const Table& table_;
  std::map<std::string, FlagTarget> by_name_;
};

}  // namespace stoker::config
