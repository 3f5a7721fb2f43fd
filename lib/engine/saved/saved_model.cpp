// SPDX-License-Identifier: Apache-2.0
#include "engine/saved/saved_model.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <mutex>
#include <set>

#include "config/task_facts.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/file.h"
#include "engine/saved/safetensors.h"
#include "model/low_rank.h"

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

std::string saved_metric(const core::Json& extra) {
  const auto options = extra.find("training_options");
  if (options == extra.end() || !options->is_object()) return "";
  const auto metric = options->find("eval-metric");
  return metric != options->end() && metric->is_string() ? metric->get<std::string>() : "";
}

Evaluated best_present(const CheckpointFiles& files, const std::string& metric, int64_t most_updates) {
  Evaluated best;
  const auto& choices = config::eval_metric_choices();
  const auto which = std::find_if(choices.begin(), choices.end(), [&](const auto& one) { return one.first == metric; });
  if (which == choices.end()) return best;
  const bool lower_is_better = config::lower_is_better(which->second);
  std::vector<int64_t> ascending = files.list();  // of equal results the earlier stays
  std::sort(ascending.begin(), ascending.end());
  for (const int64_t updates : ascending) {
    if (updates > most_updates) break;
    try {
      const std::string path = files.path_of(updates);
      const Evaluated one = read_progress(path).latest;
      if (one.updates != updates || !best.gives_way_to(one, lower_is_better)) continue;
      const std::string own = saved_metric(read_manifest(path).extra);
      if ((own.empty() || own == metric) && files.is_whole(updates)) best = one;
    } catch (const std::exception&) {  // what cannot be read is no candidate
    }
  }
  return best;
}

namespace {

/// By the metric of its newest checkpoint with a manifest that can be read.
std::string metric_of_run(const CheckpointFiles& files, const std::vector<int64_t>& present) {
  for (const int64_t updates : present) {
    try {
      return saved_metric(read_manifest(files.path_of(updates)).extra);
    } catch (const core::Error&) {  // damaged: it is of the metric of the others
    }
  }
  return "";
}

/// A command reads the same checkpoint several times.
void note_once(const std::string& line) {
  static std::mutex mutex;
  static std::set<std::string> noted;
  const std::lock_guard<std::mutex> lock(mutex);
  if (noted.insert(line).second) core::log_info("{}", line);
}

}  // namespace

std::string find_checkpoint(const std::string& path, const std::string& which) {
  if (core::file_exists(path + "/manifest.json")) return path;
  const CheckpointFiles files(path + "/checkpoints");
  const int64_t named = files.pointed(which);
  if (named >= 0 && files.has(named)) return files.path_of(named);
  const std::vector<int64_t> present = files.list();
  if (which == "best") {
    const Evaluated best = best_present(files, metric_of_run(files, present), std::numeric_limits<int64_t>::max());
    if (best.exists()) {
      const std::string left = files.path_of(best.updates);
      note_once(core::format("{} has no best checkpoint: taking {}, the best one that is left", path, left));
      return left;
    }
  }
  const int64_t last = files.pointed("last");
  if (which != "last" && last >= 0 && files.has(last)) {
    note_once(core::format("{} has no {} checkpoint: taking last", path, which));
    return files.path_of(last);
  }
  if (!present.empty()) {
    note_once(core::format("{} has no {} checkpoint: taking {}", path, which, files.path_of(present.front())));
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
  saved.weights = model::merged(read_safetensors(evaluated_weights(path)).tensors);
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
