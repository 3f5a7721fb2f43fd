// SPDX-License-Identifier: Apache-2.0
#include "observe/runs/mlflow_store.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <map>
#include <vector>

#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"
#include "core/system/file.h"
#include "core/text/json.h"
#include "observe/runs/run_listing.h"

namespace stoker::observe {
namespace {

namespace fs = std::filesystem;
using core::format;
using core::Json;

// As mlflow.entities.RunStatus and SourceType number them.
enum Status { kRunning = 1, kFinished = 3, kFailed = 4, kKilled = 5 };
constexpr int kLocalSource = 4;
constexpr size_t kMostCharacters = 6000;  // of a parameter, which MLflow refuses above

/// In UTF-8: at one byte that is not, as names of files may hold, MLflow lists no run at all.
std::string parameter_text(std::string value) {
  std::replace(value.begin(), value.end(), '\n', ' ');
  value = core::printable(value);
  if (value.size() <= kMostCharacters) return value;
  size_t end = kMostCharacters;
  while (end > 0 && (static_cast<unsigned char>(value[end]) & 0xc0) == 0x80) --end;  // whole characters
  return value.substr(0, end);
}

/// MLflow takes letters, digits and "_-. /"; here "/" groups charts. As the name is a path, no part of it may be empty
/// or begin with a dot: "../x" would leave the store.
std::string metric_name(const std::string& name) {
  std::string allowed = "/";
  for (const char c : name + "/") {
    const bool is_plain =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string("_-. /").find(c) != std::string::npos;
    const bool is_first = allowed.back() == '/';
    if (is_first && c == '/') allowed += '_';
    allowed += is_plain && !(is_first && c == '.') ? c : '_';
  }
  return allowed.substr(1, allowed.size() - 2);
}

/// A value as one line of YAML: JSON's strings are YAML's.
std::string yaml(const std::vector<std::pair<std::string, Json>>& fields) {
  std::string text;
  for (const auto& [name, value] : fields) text += name + ": " + core::json_line(value) + "\n";
  return text;
}

int64_t milliseconds_of(const std::string& utc) { return std::max<int64_t>(0, 1000 * seconds_of_utc(utc)); }

void write(const std::string& path, const std::string& content) {
  core::make_directories(fs::path(path).parent_path().string());
  core::write_file_atomically(path, content, /*durable=*/false);
}

/// Points of metrics.jsonl by metric: update and the line of MLflow's file, "time value step".
class MetricLines {
 public:
  void read(const Json& event) {
    const std::string kind = event.value("event", "");
    const int64_t updates = event.value("updates", int64_t{0}), time = milliseconds_of(event.value("time", ""));
    if (kind == "start" || kind == "resume") {
      if (first_time_ == 0) first_time_ = time;
      last_time_ = 0;
      forget_after(updates);
    }
    if (kind == "finish") last_time_ = time;
    if (kind == "report") add(event, "report/", time, updates);
    if (kind == "epoch") add(event, "", time, updates);
  }
  int64_t first_time() const { return first_time_; }
  int64_t last_time() const { return last_time_; }  ///< 0: it trains
  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> contents;
    for (const auto& [name, points] : points_) {
      for (const auto& [step, line] : points) contents[name] += line + "\n";
    }
    return contents;
  }

 private:
  /// A resumed run goes through later updates once more.
  void forget_after(int64_t updates) {
    for (auto& [name, points] : points_) points.erase(points.upper_bound(updates), points.end());
  }
  void add(const Json& object, const std::string& prefix, int64_t time, int64_t step) {
    for (const auto& item : object.items()) {
      const std::string name = prefix + item.key();
      if (item.value().is_object()) add(item.value(), name + "/", time, step);
      if (!item.value().is_number() || item.key() == "updates") continue;
      const auto value = item.value().get<double>();
      if (std::isfinite(value)) points_[metric_name(name)][step] = format("{} {} {}", time, value, step);
    }
  }

  std::map<std::string, std::map<int64_t, std::string>> points_;
  int64_t first_time_ = 0, last_time_ = 0;
};

MetricLines metrics_of(const std::string& run_dir) {
  MetricLines metrics;
  if (!core::file_exists(run_dir + "/metrics.jsonl")) return metrics;
  for_each_event(run_dir, [&](const Json& event) {
    metrics.read(event);
    return true;
  });
  return metrics;
}

Status status_of(const ListedRun& run) {
  if (run.state == "training") return kRunning;
  if (run.state == "finished") return kFinished;
  return run.state == "stopped" || run.state == "lost" ? kKilled : kFailed;
}

/// The store's number of an experiment: decimal digits, as MLflow draws them.
std::string experiment_number(const std::string& name) {
  return format("{:018}", core::hash64("experiment " + name) % 1'000'000'000'000'000'000u);
}

/// From the root, without a '/' at its end.
std::string full_path(const std::string& path) {
  std::string full = fs::absolute(path).lexically_normal().string();
  if (full.size() > 1 && full.back() == '/') full.pop_back();
  return full;
}

void write_experiment(const std::string& folder, const std::string& number, const std::string& name, int64_t time) {
  if (core::file_exists(folder + "/meta.yaml")) return;
  write(folder + "/meta.yaml", yaml({{"artifact_location", core::file_uri(folder)},
                                     {"creation_time", time},
                                     {"experiment_id", number},
                                     {"last_update_time", time},
                                     {"lifecycle_stage", "active"},
                                     {"name", name}}));
}

}  // namespace

bool write_mlflow_run(const std::string& run_dir, const std::string& store) {
  const ListedRun run = list_run(run_dir, std::time(nullptr));
  const MetricLines metrics = metrics_of(run_dir);
  const std::string home = full_path(run_dir);
  const std::string identity = format("{} {}", home, metrics.first_time());
  const std::string id = format("{:016x}{:016x}", core::hash64(identity), core::hash64("second " + identity));
  const std::string experiment = fs::path(home).parent_path().filename().string();
  const std::string number = experiment_number(experiment);
  const std::string folder = full_path(store) + "/" + number;
  write_experiment(folder, number, experiment, metrics.first_time());
  const std::string at = folder + "/" + id;
  // MLflow opens no run that lacks one of them, though it lists it.
  for (const char* const part : {"/metrics", "/params", "/artifacts"}) core::make_directories(at + part);
  for (const auto& [name, lines] : metrics.files()) write(at + "/metrics/" + name, lines);
  for (const auto& [name, value] : run.record.options) {
    write(at + "/params/" + metric_name(name), parameter_text(value));
  }
  const std::string name = parameter_text(fs::path(home).filename().string());
  const char* const user = std::getenv("USER");
  const std::vector<std::pair<std::string, std::string>> tags = {{"mlflow.runName", name},
                                                                 {"mlflow.source.name", "stoker train"},
                                                                 {"mlflow.source.type", "LOCAL"},
                                                                 {"mlflow.user", user == nullptr ? "" : user},
                                                                 {"run-dir", home},
                                                                 {"state", run.state},
                                                                 {"reason", run.reason}};
  for (const auto& [tag, value] : tags) write(at + "/tags/" + tag, parameter_text(value));
  const Status status = status_of(run);
  // Last: MLflow lists a run that has this file.
  write(at + "/meta.yaml",
        yaml({{"artifact_uri", core::file_uri(home)},
              {"end_time",
               status == kRunning ? Json(nullptr) : Json(std::max(metrics.last_time(), metrics.first_time()))},
              {"entry_point_name", ""},
              {"experiment_id", number},
              {"lifecycle_stage", "active"},
              {"run_id", id},
              {"run_name", name},
              {"run_uuid", id},
              {"source_name", ""},
              {"source_type", kLocalSource},
              {"source_version", ""},
              {"start_time", metrics.first_time()},
              {"status", static_cast<int>(status)},
              {"tags", Json::array()},
              {"user_id", user == nullptr ? "" : user}}));
  return status != kRunning;
}

}  // namespace stoker::observe
