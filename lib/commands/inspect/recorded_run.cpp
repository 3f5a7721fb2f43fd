// SPDX-License-Identifier: Apache-2.0
#include "commands/inspect/recorded_run.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "core/error.h"
#include "core/format.h"
#include "core/system/file.h"
#include "core/text/json.h"
#include "engine/files/checkpoint_files.h"

namespace stoker::train {
namespace {

using core::Error;
using core::ErrorKind;

constexpr uint64_t kMaxLineBytes = 16 << 20;  // a report names every rank

/// The run directory of a checkpoint, or the path itself.
std::string run_directory_of(const std::string& path) {
  namespace fs = std::filesystem;
  std::string plain = path;
  while (plain.size() > 1 && plain.back() == '/') plain.pop_back();
  if (!core::file_exists(plain + "/manifest.json")) return plain;
  std::error_code error;
  const fs::path whole = fs::weakly_canonical(plain, error);
  return error ? plain : whole.parent_path().parent_path().string();
}

/// A process that continued from an earlier checkpoint leaves behind what others did after it.
void forget_after(int64_t updates, RecordedRun& run) {
  run.digests.erase(run.digests.upper_bound(updates), run.digests.end());
  while (!run.reports.empty() && run.reports.back().updates > updates) run.reports.pop_back();
  run.updates = updates;
}

/// Null: it is damaged.
core::Json parsed(const std::string& text, const std::string& what) {
  try {
    return core::parse_json(text, what);
  } catch (const Error&) {
    return nullptr;
  }
}

/// As a parser reads it, however it is written. False: it is not a record.
bool read_event(const std::string& line, RecordedRun& run) {
  constexpr int64_t kMostUpdates = int64_t{1} << 53;  // what comes from a file is added to and multiplied
  const core::Json event = parsed(line, "metrics.jsonl");
  if (!event.is_object()) return false;
  const auto kind = event.find("event"), updates = event.find("updates");
  const auto names = [&](const char* name) { return kind != event.end() && *kind == name; };
  if (updates == event.end()) return true;
  if (!updates->is_number_integer()) return false;
  const auto done = updates->get<int64_t>();
  if (done < 0 || done > kMostUpdates) return false;
  if (names("start") || names("resume")) {
    forget_after(done, run);
    return true;
  }
  run.updates = std::max(run.updates, done);
  if (names("report") && event.contains("train_loss")) {
    const core::Json& loss = event.at("train_loss");  // null: not finite
    const double value = loss.is_number() ? loss.get<double>() : std::numeric_limits<double>::infinity();
    const auto skipped_updates = event.find("skipped_updates");
    const bool counts = skipped_updates != event.end() && skipped_updates->is_number_integer();
    const int64_t skipped = counts ? skipped_updates->get<int64_t>() : 0;
    run.reports.push_back({done, value, skipped});
  }
  if (!names("digest")) return true;
  try {
    run.digests[done] = {event.at("epoch").get<int64_t>(), event.at("weights").get<std::string>(),
                         event.at("images").get<std::string>()};
  } catch (const core::Json::exception& error) {
    throw Error(ErrorKind::data,
                core::format("{}/metrics.jsonl: {}", core::printable(run.path), core::problem_text(error)),
                "restore it from a copy");
  }
  return true;
}

/// status.json is only news: an unreadable one is ignored.
bool has_failed(const std::string& path) {
  constexpr uint64_t kMaxBytes = 1 << 20;
  if (!core::file_exists(path)) return false;
  const core::Json status = parsed(core::read_file(path, kMaxBytes), "status.json");
  return status.is_object() && status.contains("state") && status.at("state") == "failed";
}

}  // namespace

std::string RecordedRun::checkpoint_before(int64_t most_updates) const {
  const auto after = checkpoints.upper_bound(most_updates);
  return after == checkpoints.begin() ? "" : std::prev(after)->second;
}

size_t RecordedRun::first_report_of_skips() const {
  size_t first = reports.size();
  for (; first > 0; --first) {
    const RecordedReport before = first > 1 ? reports[first - 2] : RecordedReport{};
    const RecordedReport& report = reports[first - 1];
    if (report.skipped - before.skipped < report.updates - before.updates) break;
  }
  return first;
}

std::string RecordedRun::config_path(int64_t update) const {
  const auto next = checkpoints.lower_bound(update);
  if (next != checkpoints.end()) return next->second + "/config.yaml";
  if (core::file_exists(path + "/config.yaml") || checkpoints.empty()) return path + "/config.yaml";
  return checkpoints.rbegin()->second + "/config.yaml";
}

RecordedRun read_recorded_run(const std::string& path) {
  RecordedRun run;
  run.path = run_directory_of(path);
  const engine::CheckpointFiles files(run.path + "/checkpoints");
  const std::string metrics = run.path + "/metrics.jsonl";
  for (const int64_t updates : files.list()) run.checkpoints[updates] = files.path_of(updates);
  if (run.checkpoints.empty() && !core::file_exists(run.path + "/config.yaml")) {
    throw Error(ErrorKind::no_input, core::printable(run.path) + " is not a run directory",
                "name the directory of a run that has begun to train, as given to --run-dir");
  }
  if (core::file_exists(metrics)) {
    core::LineReader lines(metrics, kMaxLineBytes);
    bool is_record = true;
    int64_t number = 0;
    for (std::string line; lines.next(line);) {
      if (!is_record && run.damaged_line == 0) run.damaged_line = number;  // a killed process tears the last one alone
      ++number;
      is_record = read_event(line, run);
    }
  }
  if (!run.checkpoints.empty()) run.updates = std::max(run.updates, run.checkpoints.rbegin()->first);
  run.failed = has_failed(run.path + "/status.json");
  return run;
}

void require_done(int64_t update, const RecordedRun& run) {
  if (update <= run.updates) return;
  throw Error(
      ErrorKind::usage,
      core::format("--update {}: {} has done {} updates so far", update, core::printable(run.path), run.updates),
      "name a past update; train runs RUN lists how many there are");
}

}  // namespace stoker::train
