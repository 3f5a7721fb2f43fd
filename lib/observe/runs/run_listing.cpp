// SPDX-License-Identifier: Apache-2.0
#include "observe/runs/run_listing.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <set>

#include "core/error.h"
#include "core/format.h"
#include "core/open_retrying.h"
#include "core/system/file.h"
#include "core/text/columns.h"
#include "observe/report/run_record_files.h"

namespace stoker::observe {
namespace {

namespace fs = std::filesystem;
using core::Json;

constexpr int kMaxDeep = 4;
constexpr uint64_t kMaxStatusBytes = 1 << 20;

bool is_run(const std::string& path) {
  return core::file_exists(path + "/status.json") || core::file_exists(path + "/summary.csv");
}

void find_runs(const std::string& folder, int depth, std::vector<std::string>& found) {
  if (is_run(folder)) {
    found.push_back(folder);
    return;  // runs do not lie inside of runs
  }
  if (depth == kMaxDeep) return;
  std::error_code error;  // of a folder that may not be read: nothing is listed
  std::vector<std::string> inner;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.is_directory(error) && !entry.is_symlink(error)) inner.push_back(entry.path().string());
  }
  std::sort(inner.begin(), inner.end());
  for (const std::string& path : inner) find_runs(path, depth + 1, found);
}

/// Whether a process holds the lock of a run, on this machine or where the file system shares locks.
bool is_locked(const std::string& path) {
  const int fd = core::open_retrying(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return errno != ENOENT;  // without permission it counts as locked
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  const bool is_known = ::fcntl(fd, F_OFD_GETLK, &whole) == 0;
  ::close(fd);
  return !is_known || whole.l_type != F_UNLCK;
}

double number_of(const Json& object, const char* name, double otherwise) {
  const Json value = object.value(name, Json());
  return value.is_number() ? value.get<double>() : otherwise;
}

void read_status(ListedRun& run, int64_t now) {
  const std::string path = run.path + "/status.json";
  if (!core::file_exists(path)) return;
  const Json status = core::parse_json(core::read_file(path, kMaxStatusBytes), core::printable(path));
  if (!status.is_object()) return;
  run.state = status.value("state", run.state);
  run.reason = status.value("reason", "");
  run.updates = static_cast<int64_t>(number_of(status, "updates", 0));
  run.epochs_done = static_cast<int64_t>(number_of(status, "epochs_done", -1));  // of a run that has ended
  run.images_per_second = number_of(status, "images_per_second", -1);
  const int64_t written = seconds_of_utc(status.value("time", ""));
  if (written >= 0) run.age_seconds = static_cast<double>(std::max<int64_t>(0, now - written));
  if (run.state == "training" && !is_locked(run.path + "/.lock")) run.state = "lost";
}

void take_best(ListedRun& run) {
  const std::optional<BestEpoch> best = best_epoch(run.record);
  if (!best) return;
  run.best_metric = best->metric;
  run.best_value = best->value;
  run.best_epoch = best->epoch;
}

std::string epochs_text(const ListedRun& run) {
  return run.epochs > 0 ? core::format("{}/{}", run.epochs_done, run.epochs) : core::format("{}", run.epochs_done);
}

std::string best_text(const ListedRun& run) {
  return run.best_metric.empty() ? "-"
                                 : core::format("{} {:.5g} ({})", run.best_metric, run.best_value, run.best_epoch);
}

std::string age_text(double seconds) {
  constexpr double kDay = 86'400;
  if (seconds < 0) return "-";
  return seconds < 2 * kDay ? core::duration_text(std::floor(seconds)) : core::format("{:.0f}d", seconds / kDay);
}

std::string state_text(const ListedRun& run) {
  return run.reason.empty() ? run.state : run.state + " (" + run.reason + ")";
}

std::vector<std::string> differences_of(const std::vector<ListedRun>& runs) {
  std::vector<const RunRecord*> records;
  for (const ListedRun& run : runs) records.push_back(&run.record);
  return differing_options(records);
}

Json number_json(double value) { return value < 0 ? Json(nullptr) : Json(value); }

}  // namespace

int64_t seconds_of_utc(const std::string& text) {
  std::tm utc{};
  if (std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d", &utc.tm_year, &utc.tm_mon, &utc.tm_mday, &utc.tm_hour,
                  &utc.tm_min, &utc.tm_sec) != 6) {
    return -1;
  }
  utc.tm_year -= 1900;
  utc.tm_mon -= 1;
  return static_cast<int64_t>(::timegm(&utc));
}

ListedRun list_run(const std::string& path, int64_t now) {
  ListedRun run;
  run.path = path;
  while (run.path.size() > 1 && run.path.back() == '/') run.path.pop_back();
  if (!is_run(run.path)) {
    throw core::Error(core::ErrorKind::no_input, core::printable(run.path) + " is not a run directory",
                      "name the directory of a run that has begun to train, as given to --run-dir");
  }
  run.state = "unknown";
  run.epochs_done = -1;
  RunRecord& record = run.record;
  record.path = run.path;
  const auto read_if_valid = [&](const auto& read) {
    try {
      read();
    } catch (const core::Error& error) {
      record.left_out.emplace_back(error.what());
    } catch (const Json::exception&) {
    }
  };
  read_if_valid([&] { read_status(run, now); });
  read_if_valid([&] { read_run_options(record); });
  read_if_valid([&] {
    if (core::file_exists(run.path + "/summary.csv")) read_summary(record, 1);
  });
  run.epochs = std::atoll(record.option("epochs").c_str());
  if (run.epochs_done < 0) run.epochs_done = epochs_in(record);
  take_best(run);
  const auto speeds = record.by_epoch.find("images_per_second");
  if (run.images_per_second < 0 && speeds != record.by_epoch.end()) run.images_per_second = speeds->second.y.back();
  return run;
}

std::vector<ListedRun> list_runs(const std::string& folder, int64_t now) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    throw core::Error(core::ErrorKind::no_input, "the folder " + core::printable(folder) + " does not exist",
                      "name a folder with runs, or a run: train runs DIR");
  }
  std::vector<std::string> paths;
  find_runs(folder, 0, paths);
  std::vector<ListedRun> runs;
  for (const std::string& path : paths) runs.push_back(list_run(path, now));
  sort_runs(runs);
  return runs;
}

void sort_runs(std::vector<ListedRun>& runs) {
  std::stable_sort(runs.begin(), runs.end(), [](const ListedRun& a, const ListedRun& b) {
    const bool a_trains = a.state == "training", b_trains = b.state == "training";
    return a_trains != b_trains ? a_trains : a.age_seconds < b.age_seconds;
  });
  std::stable_sort(runs.begin(), runs.end(), [](const ListedRun& a, const ListedRun& b) {
    return is_better(best_epoch(a.record), best_epoch(b.record));
  });
}

std::string runs_table(const std::vector<ListedRun>& runs) {
  constexpr size_t kShownOptions = 4, kOptionWidth = 20;
  std::vector<std::string> options = differences_of(runs);
  std::stable_partition(options.begin(), options.end(), [](const std::string& name) {
    static const std::set<std::string> kFirst = {"model", "lr", "opt", "sched", "epochs", "batch-size", "img-size"};
    return kFirst.count(name) > 0;
  });
  const size_t num_hidden = options.size() - std::min(options.size(), kShownOptions);
  options.resize(options.size() - num_hidden);
  std::vector<std::vector<std::string>> rows = {{"run", "state", "epoch", "best (epoch)"}};
  for (const std::string& name : options) rows[0].push_back(core::printable(name));
  const size_t first_number = rows[0].size();  // from here on columns are flush right
  rows[0].insert(rows[0].end(), {"images/s", "age"});
  std::vector<size_t> group_starts;  // rows with which the runs of another metric begin
  for (const ListedRun& run : runs) {
    if (&run != &runs.front() && !run.best_metric.empty() && run.best_metric != (&run - 1)->best_metric) {
      group_starts.push_back(rows.size());
    }
    const std::string speed =
        run.images_per_second < 0 ? "-" : core::count_text(static_cast<int64_t>(std::llround(run.images_per_second)));
    rows.push_back({core::printable(run.path), core::printable(state_text(run)), epochs_text(run), best_text(run)});
    for (const std::string& name : options) {
      const std::string value = core::printable(run.record.option(name));
      rows.back().push_back(value.size() > kOptionWidth ? value.substr(0, kOptionWidth - 3) + "..." : value);
    }
    rows.back().insert(rows.back().end(), {speed, age_text(run.age_seconds)});
  }
  const std::vector<std::string> lines = core::aligned_rows(rows, first_number);
  std::string text;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (std::find(group_starts.begin(), group_starts.end(), i) != group_starts.end()) text += "\n";
    text += lines[i] + "\n";
  }
  for (const ListedRun& run : runs) {
    for (const std::string& line : run.record.left_out) text += "note: " + core::printable(line) + "\n";
  }
  if (num_hidden > 0)
    text += core::format("{} more differ{}: --json lists them\n", core::counted(num_hidden, "option"),
                         num_hidden == 1 ? "s" : "");
  return text;
}

core::Json runs_json(const std::vector<ListedRun>& runs) {
  Json list = Json::array();
  const std::vector<std::string> differing = differences_of(runs);
  for (const ListedRun& run : runs) {
    Json left_out = Json::array();
    for (const std::string& line : run.record.left_out) left_out.push_back(core::printable(line));
    Json options = Json::object();
    for (const std::string& name : differing) options[core::printable(name)] = core::printable(run.record.option(name));
    list.push_back({{"path", core::printable(run.path)},
                    {"state", core::printable(run.state)},
                    {"reason", run.reason.empty() ? Json(nullptr) : Json(core::printable(run.reason))},
                    {"epochs_done", run.epochs_done},
                    {"epochs", run.epochs > 0 ? Json(run.epochs) : Json(nullptr)},
                    {"updates", run.updates},
                    {"best_metric", run.best_metric.empty() ? Json(nullptr) : Json(run.best_metric)},
                    {"best_value", run.best_metric.empty() ? Json(nullptr) : Json(run.best_value)},
                    {"best_epoch", run.best_metric.empty() ? Json(nullptr) : Json(run.best_epoch)},
                    {"differing_options", options},
                    {"images_per_second", number_json(run.images_per_second)},
                    {"left_out", left_out},
                    {"age_seconds", number_json(run.age_seconds)}});
  }
  return list;
}

}  // namespace stoker::observe
