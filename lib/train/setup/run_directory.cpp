// SPDX-License-Identifier: Apache-2.0
#include "train/setup/run_directory.h"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "core/error.h"
#include "core/log.h"
#include "core/text/json.h"
#include "engine/saved/saved_model.h"
#include "weights/names/known_weights.h"

namespace stoker::train {

namespace fs = std::filesystem;

RunDirectory::RunDirectory(const std::string& path) : path_(path) {
  core::make_directories(path_);
  lock_ = std::make_unique<core::LockFile>(path_ + "/.lock");
  for (const char* const name : {"config.yaml", "operator_shapes.csv", "operators.csv", "plan.json", "profile.json",
                                 "report.html", "status.json", "summary.csv", "worst.json"}) {
    core::remove_temporaries_of(path_ + "/" + name);  // of runs that were killed
  }
}

std::string numbered_directory(const std::string& path, bool make) {
  const size_t place = path.find("{n}");
  if (place == std::string::npos) return path;
  for (int64_t number = 1;; ++number) {
    std::string candidate = path.substr(0, place) + std::to_string(number) + path.substr(place + 3);
    std::error_code status;
    if (fs::symlink_status(candidate, status).type() != fs::file_type::not_found) continue;
    if (!make) return candidate;
    const fs::path parent = fs::path(candidate).parent_path();
    if (!parent.empty()) core::make_directories(parent.string());
    if (::mkdir(candidate.c_str(), 0777) == 0) return candidate;
    if (errno != EEXIST) throw core::errno_error(errno, "create", candidate, core::ErrorKind::cannot_create);
  }
}

std::string set_run_aside(const std::string& path) {
  if (!core::file_exists(path + "/metrics.jsonl") && !core::file_exists(path + "/checkpoints")) return "";
  const RunDirectory held(path);  // nobody trains into it
  fs::path plain(path);
  if (!plain.has_filename()) plain = plain.parent_path();
  const std::string aside = numbered_directory(plain.string() + ".old-{n}", /*make=*/false);
  if (core::posix_file_system().rename(plain.string(), aside) == 0) return aside;
  throw core::errno_error(errno, "rename", plain.string(), core::ErrorKind::cannot_create);
}

std::string starting_weights(const std::string& path) {
  if (!fs::is_directory(path)) return path;
  const bool is_ours = core::file_exists(path + "/manifest.json") || core::file_exists(path + "/checkpoints");
  if (is_ours) return engine::evaluated_weights(engine::find_checkpoint(path, "best"));
  const std::string found = weights::weights_of_folder(path);
  return found.empty() ? path : found;
}

namespace {

constexpr uint64_t kMaxRecordBytes = 64 << 20;

/// A JSON file beside weights; null where there is none that can be read.
core::Json record_beside(const std::string& weights, const char* name) {
  const std::string path = (fs::path(weights).parent_path() / name).string();
  if (!core::file_exists(weights) || !core::file_exists(path)) return nullptr;  // the name of weights is no path
  try {
    return core::parse_json(core::read_file(path, kMaxRecordBytes), path);
  } catch (const core::Error&) {
    return nullptr;
  }
}

}  // namespace

std::vector<std::string> classes_beside(const std::string& weights) {
  try {
    const core::Json state = record_beside(weights, "state.json");
    return state.is_null() ? std::vector<std::string>() : state.at("class_names").get<std::vector<std::string>>();
  } catch (const core::Json::exception&) {
    return {};
  }
}

std::pair<std::vector<double>, std::vector<double>> normalisation_beside(const std::string& weights) {
  try {
    const core::Json record = record_beside(weights, "preprocess.json");
    if (record.is_null()) return {};
    const core::Json& normalize = record.at("normalize");
    return {normalize.at("mean").get<std::vector<double>>(), normalize.at("std").get<std::vector<double>>()};
  } catch (const core::Json::exception&) {
    return {};
  }
}

}  // namespace stoker::train
