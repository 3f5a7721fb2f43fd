// SPDX-License-Identifier: Apache-2.0
// Names that other trainers have for options, as one table: what each means here, or that it means nothing here and
// why. Names and defaults are those of LightningCLI, of torchvision's reference scripts, and of train.py of timm 0.6 to
// 1.0 (github.com/huggingface/pytorch-image-models).
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace stoker::config {

struct ForeignOption {
  std::string name;  ///< theirs, with `-` for `_`; of LightningCLI behind its section: "trainer.logger"
  /// An option of ours that takes the value as it is; or cases, the first that fits: "VALUE|VALUE=option:TEXT,...;
  /// ...". As a VALUE, `N` is any whole number from 1 on, `-` what is off (nothing, false, 0), `*` anything; in TEXT,
  /// `*` is their value. A case without an option is accepted and does nothing; without a case that fits it is an
  /// error.
  /// "@name" is a conversion in yaml/foreign_yaml.cpp; "" is read by one of these; the option `!` is an error.
  const char* ours;
  const char* note = "";  ///< what does its work here, for whoever uses it
  const char* when = "";  ///< it counts only beside another one that is given: "clip_grad", "opt=sgd|momentum"
};

/// An option that a file for another trainer leaves at that trainer's own default, which differs from ours.
struct ForeignDefault {
  const char* section;  ///< "timm", "optimizer", "optimizer.sgd"
  const char* option;
  const char* text;
};

struct ForeignCase {
  std::vector<std::string> patterns;
  std::vector<std::pair<std::string, std::string>> values;  ///< option name, text
};

/// Words that are read on the command line and in any file.
const std::vector<ForeignOption>& foreign_options();
/// Keys of whole files, beside foreign_options().
const std::vector<ForeignOption>& timm_keys();
const std::vector<ForeignOption>& lightning_keys();
const std::vector<ForeignDefault>& foreign_defaults();
/// "0.9,0.999" of "[0.9, 0.999]".
std::string without_brackets(std::string text);
/// Translates an option of another program's command line: Ultralytics (lr0=0.01), Hugging Face (--output_dir),
/// Lightning (trainer.devices) and timm; false where it is unknown. Without options: nothing, and `note` may give the
/// reason.
bool translate_foreign_option(const std::string& name, std::string text,
                              std::vector<std::pair<std::string, std::string>>& options, std::string& note);
/// The folder that project=runs/x, --name first and the like stand for, in the words of a command line.
std::string foreign_run_dir(const std::vector<std::string>& words);

/// The cases of an option.
std::vector<ForeignCase> cases_of(const ForeignOption& word);
/// In any letters.
bool fits_pattern(const std::string& pattern, const std::string& text);
/// A TEXT with their value in place of `*`.
std::string filled_in(std::string text, const std::string& theirs);

// Options of older programs: those with a new name, and those that are gone. An old name is an error that names the new
// one; stored runs, which name them in config.yaml and in checkpoints, are read as if they had been written today.

/// Values by the names of their options.
using OptionTexts = std::map<std::string, std::string>;

/// "was renamed: write --scale 0.08,1" for "scale-min" (or "no-..." of a switch); in a file "scale: 0.08,1". "" for any
/// other name.
std::string old_name_hint(const std::string& name, bool is_flag);

/// The old names whose values stand in today's option `now`.
struct RenamedOption {
  std::vector<std::string> old;
  std::string now, text;
};
/// The entries of `texts` with an old name, as they are written today; an empty `now` is an option that is gone.
std::vector<RenamedOption> renamed_options(const OptionTexts& texts);

/// All options by today's names, each written as the table writes it. What the table does not have stays as it is.
OptionTexts with_current_names(OptionTexts texts);

}  // namespace stoker::config
