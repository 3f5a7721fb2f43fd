// SPDX-License-Identifier: Apache-2.0
// Options of older programs: those with a new name, and those that are gone. An old name is an error that names the new
// one; stored runs, which name them in config.yaml and in checkpoints, are read as if they had been written today.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace stoker::config {

/// Values by the names of their options.
using OptionTexts = std::map<std::string, std::string>;

/// "was renamed: write --scale 0.08,1" for "scale-min" (or "no-..." of a switch); in a file "scale: 0.08,1". "" for any
/// other name.
std::string answer_to_old_name(const std::string& name, bool is_flag);

/// The old names whose values stand in today's option `now`.
struct RenamedOption {
  std::vector<std::string> old;
  std::string now, text;
};
/// What in `texts` has an old name, as it is written today; an empty `now` is an option that is gone.
std::vector<RenamedOption> renamed_options(const OptionTexts& texts);

/// All options by today's names, each written as the table writes it. What the table does not have stays as it is.
OptionTexts in_todays_words(OptionTexts texts);

}  // namespace stoker::config
