// SPDX-License-Identifier: Apache-2.0
#include "engine/saved/saved_model.h"

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/file.h"
#include "engine/files/checkpoint_files.h"
#include "engine/saved/safetensors.h"

namespace stoker::engine {

core::Json read_state_file(const std::string& path) {
  return core::parse_json(core::read_file(path + "/" + kStateFile, kMaxTextBytes), path + "/" + kStateFile);
}

void bad_state(const std::string& path, const core::Json::exception& error) {
  throw core::Error(core::ErrorKind::data, core::format("{}/{}: {}", path, kStateFile, core::problem_text(error)),
                    "use another checkpoint");
}

RunProgress read_progress(const std::string& path) {
  const core::Json json = read_state_file(path);
  try {
    return RunProgress::from_json(json.at("train"), path + "/" + kStateFile);
  } catch (const core::Json::exception& error) {
    bad_state(path, error);
  }
}

std::string find_checkpoint(const std::string& path, const std::string& which) {
  if (core::file_exists(path + "/manifest.json")) return path;
  const CheckpointFiles files(path + "/checkpoints");
  for (const std::string& name : {which, std::string("last")}) {
    const int64_t updates = files.pointed(name);
    if (updates < 0 || !files.has(updates)) continue;
    if (name != which) core::log_info("{} has no {} checkpoint: taking {}", path, which, name);
    return files.path_of(updates);
  }
  if (const std::vector<int64_t> present = files.list(); !present.empty()) {
    core::log_info("{} has no {} checkpoint: taking {}", path, which, files.path_of(present.front()));
    return files.path_of(present.front());
  }
  throw core::Error(
      core::ErrorKind::no_input, "no checkpoint in " + core::printable(path),
      "name a run directory (it holds checkpoints/) or a checkpoint (it holds manifest.json); a file of weights "
      "is for --init-from");
}

SavedModel load_saved_model(const std::string& path) {
  const Manifest manifest = verify_checkpoint(path);
  const core::Json json = read_state_file(path);
  SavedModel saved;
  saved.path = path;
  saved.extra = manifest.extra;
  saved.config_yaml = core::read_file(path + "/" + kConfigFile, kMaxTextBytes);
  try {
    saved.state = RunProgress::from_json(json.at("train"), path + "/" + kStateFile);
    json.at("class_names").get_to(saved.class_names);
  } catch (const core::Json::exception& error) {
    bad_state(path, error);
  }
  if (manifest.files.count(kPreprocessFile) > 0) {
    const std::string file = path + "/" + kPreprocessFile;
    saved.preprocess = core::parse_json(core::read_file(file, kMaxTextBytes), file);
  }
  saved.weights = read_safetensors(evaluated_weights(path)).tensors;
  return saved;
}

SavedModel load_model_of(const std::string& path, const std::string& which) {
  constexpr int kAttempts = 5;
  for (int attempt = 1;; ++attempt) {
    const std::string checkpoint = find_checkpoint(path, which);
    try {
      return load_saved_model(checkpoint);
    } catch (const core::Error&) {
      if (attempt == kAttempts || core::file_exists(checkpoint + "/manifest.json")) throw;
    }
  }
}

std::string evaluated_weights(const std::string& path) {
  const bool has_average = read_manifest(path).files.count(kAverageFile) > 0;
  return path + "/" + (has_average ? kAverageFile : kModelFile);
}

}  // namespace stoker::engine
