// SPDX-License-Identifier: Apache-2.0
// Names that other trainers have for options, as one table: what each means here, or that it means nothing here and
// why. Names and defaults are those of LightningCLI, of torchvision's reference scripts, and of train.py of timm 0.6 to
// 1.0 (github.com/huggingface/pytorch-image-models).
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace stoker::config {

struct ForeignWord {
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
const std::vector<ForeignWord>& words_of_others();
/// Keys of whole files, beside words_of_others().
const std::vector<ForeignWord>& keys_of_timm();
const std::vector<ForeignWord>& keys_of_lightning();
const std::vector<ForeignDefault>& foreign_defaults();
/// What an option of other programs' command lines means, of Ultralytics (lr0=0.01) and Hugging Face (--output_dir);
/// false where it is unknown. Without options: nothing, and `note` may say why.
bool option_of_others(const std::string& name, std::string text,
                      std::vector<std::pair<std::string, std::string>>& options, std::string& note);
/// Of words such as project=runs/x and name=first.
std::string run_dir_of_others(const std::vector<std::string>& words);

/// Of a word with cases.
std::vector<ForeignCase> cases_of(const ForeignWord& word);
bool fits_pattern(const std::string& pattern, const std::string& text);
/// A TEXT with their value in place of `*`.
std::string filled_in(std::string text, const std::string& theirs);

}  // namespace stoker::config
