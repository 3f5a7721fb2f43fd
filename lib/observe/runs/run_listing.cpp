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

#include "core/error.h"
#include "core/format.h"
#include "core/open_retrying.h"
#include "core/system/file.h"
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
  std::error_code trouble;  // of a folder that may not be read: nothing is listed
  std::vector<std::string> inner;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, trouble)) {
    if (entry.is_directory(trouble) && !entry.is_symlink(trouble)) inner.push_back(entry.path().string());
  }
  std::sort(inner.begin(), inner.end());
  for (const std::string& path : inner) find_runs(path, depth + 1, found);
}

/// Whether a process holds the lock of a run, on this machine or where the file system tells.
bool is_locked(const std::string& path) {
  const int fd = core::open_retrying(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return errno != ENOENT;  // who may not look cannot tell
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  const bool told = ::fcntl(fd, F_OFD_GETLK, &whole) == 0;
  ::close(fd);
  return !told || whole.l_type != F_UNLCK;
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

/// The last row that was the best so far, and the first metric of it, the loss where there is none.
void read_best(const RunRecord& record, ListedRun& run) {
  const std::vector<std::string>& columns = record.epoch_columns;
  const auto place = [&](const std::string& name) {
    return static_cast<size_t>(std::find(columns.begin(), columns.end(), name) - columns.begin());
  };
  const size_t flag = place("best"), loss = place("eval_loss");
  if (flag == columns.size()) return;
  size_t metric = loss;
  for (size_t k = 0; k < columns.size(); ++k) {
    const bool is_metric =
        columns[k].rfind("eval_", 0) == 0 && columns[k] != "eval_loss" && columns[k] != "eval_seconds";
    if (is_metric) {
      metric = k;
      break;
    }
  }
  for (const std::vector<std::string>& row : record.epoch_rows) {
    if (row[flag] != "1" || metric == columns.size() || row[metric].empty()) continue;
    run.best_metric = columns[metric].substr(5);
    run.best_value = std::atof(row[metric].c_str());
    const size_t epoch = place("epoch");
    run.best_epoch = epoch < row.size() ? std::atoll(row[epoch].c_str()) : 0;
  }
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
    throw core::Error(core::ErrorKind::no_input, core::printable(run.path) + " is no run directory",
                      "name the directory of a run that has begun to train, as given to --run-dir");
  }
  run.state = "unknown";
  run.epochs_done = -1;
  RunRecord record;
  record.path = run.path;
  const auto read_what_can_be_read = [](const auto& read) {
    try {
      read();
    } catch (const core::Error&) {
    } catch (const Json::exception&) {
    }
  };
  read_what_can_be_read([&] { read_status(run, now); });
  read_what_can_be_read([&] { read_run_options(record); });
  read_what_can_be_read([&] {
    if (core::file_exists(run.path + "/summary.csv")) read_summary(record, 1);
  });
  run.epochs = std::atoll(record.option("epochs").c_str());
  if (run.epochs_done < 0) run.epochs_done = static_cast<int64_t>(record.epoch_rows.size());
  read_best(record, run);
  const auto speeds = record.by_epoch.find("images_per_second");
  if (run.images_per_second < 0 && speeds != record.by_epoch.end()) run.images_per_second = speeds->second.y.back();
  return run;
}

std::vector<ListedRun> list_runs(const std::string& folder, int64_t now) {
  std::error_code trouble;
  if (!fs::is_directory(folder, trouble)) {
    throw core::Error(core::ErrorKind::no_input, "the folder " + core::printable(folder) + " does not exist",
                      "name a folder with runs, or a run: train runs DIR");
  }
  std::vector<std::string> paths;
  find_runs(folder, 0, paths);
  std::vector<ListedRun> runs;
  for (const std::string& path : paths) runs.push_back(list_run(path, now));
  std::stable_sort(runs.begin(), runs.end(), [](const ListedRun& a, const ListedRun& b) {
    const bool a_trains = a.state == "training", b_trains = b.state == "training";
    return a_trains != b_trains ? a_trains : a.age_seconds < b.age_seconds;
  });
  return runs;
}

std::string runs_table(const std::vector<ListedRun>& runs) {
  std::vector<std::vector<std::string>> rows = {{"run", "state", "epoch", "best (epoch)", "images/s", "age"}};
  for (const ListedRun& run : runs) {
    const std::string speed =
        run.images_per_second < 0 ? "-" : core::count_text(static_cast<int64_t>(std::llround(run.images_per_second)));
    rows.push_back({core::printable(run.path), core::printable(state_text(run)), epochs_text(run), best_text(run),
                    speed, age_text(run.age_seconds)});
  }
  std::vector<size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (size_t k = 0; k < row.size(); ++k) widths[k] = std::max(widths[k], row[k].size());
  }
  constexpr size_t kFirstNumber = 4;  // from here on columns are flush right
  std::string text;
  for (const auto& row : rows) {
    for (size_t k = 0; k < row.size(); ++k) {
      text += k == 0 ? "" : "  ";
      text += k < kFirstNumber ? core::format("{:<{}}", row[k], widths[k]) : core::format("{:>{}}", row[k], widths[k]);
    }
    text += "\n";
  }
  return text;
}

core::Json runs_json(const std::vector<ListedRun>& runs) {
  Json list = Json::array();
  for (const ListedRun& run : runs) {
    list.push_back({{"path", core::printable(run.path)},
                    {"state", core::printable(run.state)},
                    {"reason", run.reason.empty() ? Json(nullptr) : Json(core::printable(run.reason))},
                    {"epochs_done", run.epochs_done},
                    {"epochs", run.epochs > 0 ? Json(run.epochs) : Json(nullptr)},
                    {"updates", run.updates},
                    {"best_metric", run.best_metric.empty() ? Json(nullptr) : Json(run.best_metric)},
                    {"best_value", run.best_metric.empty() ? Json(nullptr) : Json(run.best_value)},
                    {"best_epoch", run.best_metric.empty() ? Json(nullptr) : Json(run.best_epoch)},
                    {"images_per_second", number_json(run.images_per_second)},
                    {"age_seconds", number_json(run.age_seconds)}});
  }
  return list;
}

}  // namespace stoker::observe
