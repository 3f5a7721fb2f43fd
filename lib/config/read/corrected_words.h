// SPDX-License-Identifier: Apache-2.0
// Words as other programs take them (photos, epochs=3, --lr0 0.1, --input-size 3 32 32), made ours.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "config/read/flag_names.h"

namespace stoker::config {

/// A command line in which such words are replaced, each with a problem that names ours.
class CorrectedWords {
 public:
  CorrectedWords(const CommandLine& line, const Table& table, const FlagNames& names,
                 std::vector<std::string>& problems);
  CorrectedWords& operator=(CorrectedWords&&) = delete;  // not copied, not moved

  void correct(const std::vector<std::string>& words);
  /// To be parsed: what stays unknown is in it.
  const std::vector<std::string>& words() const { return corrected_; }
  /// Reports a positional argument that is missing. `first`: the word that took the first place.
  void add_missing(const std::string& name, const std::string& first);
  bool wants_help() const;
  /// The whole command as it was probably meant; "" where nothing was corrected.
  std::string whole_command() const;

 private:
  using Options = std::vector<std::pair<std::string, std::string>>;  ///< name and text

  void keep(const std::string& word);
  /// The value behind a known flag. Returns how many words it takes.
  size_t keep_value(const std::vector<std::string>& words, size_t begin, const FlagTarget& target);
  /// Returns how many words behind it belong to it. What stays unknown is reported later, and left out of what was
  /// meant.
  size_t correct_flag(const std::vector<std::string>& words, size_t at, const std::string& word);
  bool correct_pair(const std::vector<std::string>& words, const std::string& word, bool is_first);
  bool correct_run_dir(const std::vector<std::string>& words, const std::string& key, const std::string& problem);
  bool correct_place(const std::string& key, const std::string& text, const std::string& problem);
  bool correct_path(const std::string& word, bool is_first);
  bool translate(const std::string& name, const std::string& text, Options& options, std::string& note) const;
  bool takes_several(const FlagTarget& target) const;
  std::string not_expected(const std::string& word, bool is_first) const;
  void replace(const std::string& problem, const Options& options, const std::string& note, bool names_ours = true);

  const CommandLine& line_;
  const Syntax& syntax_;
  const Table& table_;
  const FlagNames& names_;
  const bool trains_;  ///< takes the options of a training
  std::vector<std::string>& problems_;
  std::vector<std::string> corrected_, meant_;  ///< what is parsed; the same without unknown flags
  std::vector<std::string> given_;              ///< options on the command line
  size_t plain_words_ = 0;                      ///< kept words that stand alone
  bool is_corrected_ = false;
  std::string unknown_first_;  ///< a first word that could be a folder which is not there
};

}  // namespace stoker::config
