// SPDX-License-Identifier: Apache-2.0
// What must be the same for a resumed run to be the same run; written into each checkpoint and compared on resume.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/table/old_names.h"
#include "config/training_option.h"
#include "core/text/json.h"

namespace stoker::engine {

/// What must be the same for a resumed run to be the same run.
struct RunIdentity {
  std::string config_yaml;     ///< resolved, reloadable
  core::Json preprocess = {};  ///< how samples become what the network sees; null: not written
  std::vector<config::TrainingOption> training_options;
  std::string data_fingerprint;
  std::vector<std::string> class_names;
  // Not compared; results depend on them bit for bit, so a change is logged as a warning.
  int64_t threads = 1;
  std::string computed_by;  ///< device and LibTorch: "cpu, LibTorch 1.13.0, CPU build"; empty: not known
  int64_t ranks = 0;        ///< whose gradients are added in an order that depends on their number; 0: none are
  core::Json program;       ///< what computes, as names and texts
};

/// The training options in the manifest of a checkpoint, which may hold anything, by today's names.
config::OptionTexts saved_options(const core::Json& manifest);
/// Names and values of the options that decide what is trained.
core::Json options_json(const RunIdentity& identity);
/// For the manifest of a checkpoint; differences() reads it.
core::Json manifest_of(const RunIdentity& identity);
/// What differs between a run and the manifest of a checkpoint, one line each: options and data. Warns of what may
/// change bits only. `path` is for messages; `free_option`: the name of one that may differ. Throws Error{data} for a
/// manifest that is none of ours.
std::vector<std::string> differences(const RunIdentity& identity, const core::Json& manifest, const std::string& path,
                                     const std::vector<std::string>& free_options = {});

}  // namespace stoker::engine
