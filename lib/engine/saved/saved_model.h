// SPDX-License-Identifier: Apache-2.0
// The part of a checkpoint that evaluation and prediction read. Without anything that trains.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/text/json.h"
#include "engine/files/checkpoint_files.h"
#include "engine/run/run_progress.h"
#include "model/image_model.h"

namespace stoker::engine {

// The files of a checkpoint that are read without the rest.
inline constexpr const char* kModelFile = "model.safetensors";
inline constexpr const char* kAverageFile = "model_ema.safetensors";
inline constexpr const char* kStateFile = "state.json";
inline constexpr const char* kConfigFile = "config.yaml";
inline constexpr const char* kPreprocessFile = "preprocess.json";
inline constexpr uint64_t kMaxTextBytes = 256 << 20;

core::Json read_state_file(const std::string& path);
/// Throws Error{data}: what is wrong with the state file of the checkpoint `path`.
[[noreturn]] void bad_state(const std::string& path, const core::Json::exception& error);

/// Where the run of a checkpoint stood when it was written. Throws Error{data}.
RunProgress read_progress(const std::string& path);

/// The metric by which a checkpoint's run chooses the best one; "": `extra` of its manifest has none.
std::string saved_metric(const core::Json& extra);
/// The best of the whole checkpoints of a run that have done `most_updates` or less, by the result with which each was
/// saved, as the run itself chooses it by `metric`. Those of another metric are no candidates.
Evaluated best_present(const CheckpointFiles& files, const std::string& metric, int64_t most_updates);
/// The checkpoint folder meant by `path`: itself, or, when it is a run directory, its `which` (best or last). Where
/// that checkpoint is not there, best is the best one that is left, else last, and last the newest, with a note in the
/// log. Throws Error{no_input}.
std::string find_checkpoint(const std::string& path, const std::string& which);

/// The part of a checkpoint that evaluation and prediction need.
struct SavedModel {
  std::string path;
  std::string config_yaml;
  core::Json preprocess = {};  ///< null in checkpoints that have none
  std::vector<std::string> class_names;
  core::Json extra;  ///< field `extra` of the manifest
  RunProgress state;
  std::vector<model::NamedTensor> weights;  ///< the average when the run kept one
};
/// Reads and verifies. `path` is a checkpoint folder.
SavedModel load_saved_model(const std::string& path);
/// The model of find_checkpoint(). A run that is under way removes checkpoints meanwhile: then it is the one that has
/// taken its place. Throws as load_saved_model(), too.
SavedModel load_model_of(const std::string& path, const std::string& which);
/// The file of the weights that are evaluated: the average where the manifest in the folder `path` lists one. Throws
/// Error{data}.
std::string evaluated_weights(const std::string& path);

}  // namespace stoker::engine
