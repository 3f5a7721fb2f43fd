// SPDX-License-Identifier: Apache-2.0
#include "train/setup/run_directory.h"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/text/json.h"
#include "engine/saved/saved_model.h"
#include "weights/file/weight_file.h"
#include "weights/names/known_weights.h"

namespace stoker::train {

namespace fs = std::filesystem;

namespace {

/// Files that a run replaces, and that it continues.
constexpr const char* kReplaced[] = {"config.yaml", "operator_shapes.csv", "operators.csv", "plan.json", "profile.json",
                                     "report.html", "status.json",         "summary.csv",   "worst.json"};
constexpr const char* kContinued[] = {"metrics.jsonl", "train.log", "network.ts"};

/// The first bytes of a file; empty: there is none. Nothing else is opened: a pipe would be waited for.
std::string front_of(const std::string& path) {
  constexpr size_t kFront = 64 << 10;
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return "";
  std::string front(kFront, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(front.data(), static_cast<std::streamsize>(front.size()));
  front.resize(static_cast<size_t>(file.gcount()));
  return front;
}

bool is_our_log(std::string front) {
  const std::string form = "0000-00-00T00:00:00.000Z ";
  front.resize(std::min(front.size(), form.size()));
  std::replace_if(
      front.begin(), front.end(), [](unsigned char c) { return std::isdigit(c) != 0; }, '0');
  return front == form;
}

/// Whether a run of ours has written here, which a killed or pruned one shows by any of its files.
bool holds_run(const std::string& path) {
  if (front_of(path + "/metrics.jsonl").rfind("{\"event\":", 0) == 0) return true;
  if (is_our_log(front_of(path + "/train.log"))) return true;
  const std::string config = front_of(path + "/config.yaml");
  if (config.find("\n  run-dir: ") != std::string::npos && config.find("\n  data-dir: ") != std::string::npos)
    return true;
  const engine::CheckpointFiles checkpoints(path + "/checkpoints");
  const std::vector<int64_t> steps = checkpoints.list();
  return std::any_of(steps.begin(), steps.end(), [&](int64_t updates) {
    return core::file_exists(checkpoints.path_of(updates) + "/manifest.json");
  });
}

/// Their paths in a run directory.
std::vector<std::string> written_files(const std::string& path) {
  std::vector<std::string> files;
  for (const char* const name : kReplaced) files.push_back((fs::path(path) / name).string());
  for (const char* const name : kContinued) files.push_back((fs::path(path) / name).string());
  return files;
}

/// run-dir may stand in a file from anybody, and name the folder of another program.
void refuse_files_of_others(const std::string& path) {
  const std::vector<std::string> files = written_files(path);
  const auto first = std::find_if(files.begin(), files.end(), [](const std::string& file) {
    std::error_code ignored;
    return fs::is_regular_file(fs::symlink_status(file, ignored)) && fs::file_size(file, ignored) != 0;
  });
  if (first == files.end() || holds_run(path)) return;
  throw core::Error(core::ErrorKind::config,
                    core::printable(*first) + " is there, and " + core::printable(path) +
                        " holds no run: a run would write over the file of another program",
                    "choose another --run-dir, or move the file");
}

}  // namespace

RunDirectory::RunDirectory(const std::string& path) : path_(path) {
  refuse_files_of_others(path_);
  core::make_directories(path_);
  lock_ = std::make_unique<core::LockFile>(path_ + "/.lock");
  for (const char* const name : kReplaced) core::remove_temporaries_of(path_ + "/" + name);  // of runs that were killed
}

std::vector<std::string> files_of_run(const std::string& checkpoint) {
  std::vector<std::string> files = {checkpoint};
  const fs::path folder = fs::path(checkpoint).lexically_normal().parent_path();
  if (folder.filename() != "checkpoints") return files;
  files.push_back(folder.string());
  for (const std::string& file : written_files(folder.parent_path().string())) files.push_back(file);
  return files;
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

/// An entry of the metadata of safetensors, as `train export` writes it; null where there is none.
core::Json exported_entry(const std::string& file, const char* key) {
  if (!core::ends_with(file, ".safetensors") || !core::file_exists(file)) return nullptr;
  try {
    const auto metadata = weights::open_weight_file(file).metadata;
    const auto found = metadata.find(key);
    return found == metadata.end() ? core::Json() : core::parse_json(found->second, file);
  } catch (const core::Error&) {
    return nullptr;
  }
}

}  // namespace

std::vector<std::string> classes_beside(const std::string& weights) {
  try {
    if (const core::Json names = exported_entry(weights, "class_names"); !names.is_null())
      return names.get<std::vector<std::string>>();
    const core::Json state = record_beside(weights, "state.json");
    return state.is_null() ? std::vector<std::string>() : state.at("class_names").get<std::vector<std::string>>();
  } catch (const core::Json::exception&) {
    return {};
  }
}

std::pair<std::vector<double>, std::vector<double>> normalisation_beside(const std::string& weights) {
  try {
    core::Json record = exported_entry(weights, "preprocess");
    if (record.is_null()) record = record_beside(weights, "preprocess.json");
    if (record.is_null()) return {};
    const core::Json& normalize = record.at("normalize");
    return {normalize.at("mean").get<std::vector<double>>(), normalize.at("std").get<std::vector<double>>()};
  } catch (const core::Json::exception&) {
    return {};
  }
}

}  // namespace stoker::train
