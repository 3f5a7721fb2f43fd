// SPDX-License-Identifier: Apache-2.0
// `train runs`: runs, from what they leave in their directories.
#include "commands/runs/runs.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <utility>

#include "commands/command.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/file.h"
#include "core/system/stop_signal.h"
#include "core/time/clock.h"
#include "observe/report/report_page.h"
#include "observe/report/run_record.h"
#include "observe/report/run_record_files.h"
#include "observe/runs/mlflow_store.h"
#include "observe/runs/run_listing.h"
#include "observe/runs/watch_view.h"
#include "train/failure/result_output.h"

namespace stoker::train {
namespace {

struct RunsFlags {
  std::vector<std::string> folders;  ///< folders that hold runs, or runs; empty: "runs"
  bool curves = false;               ///< draw once
  bool follow = false;               ///< draw, or keep the page up to date, until the runs end
  bool html = false;
  std::string output;  ///< the page; empty: report.html in the run directory, or here when there are several
  bool json = false;
  std::string to;  ///< "mlflow": the last of `folders` is its store
};

constexpr double kPause = 1;  // seconds
constexpr char kHome[] = "\x1b[H", kEraseLine[] = "\x1b[K", kEraseBelow[] = "\x1b[J", kEraseAll[] = "\x1b[2J";

struct TerminalSize {
  int columns = 100, rows = 40;  ///< where unknown
};

TerminalSize terminal_size() {
  struct winsize size {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return {};
  return {size.ws_col, std::max<int>(2, size.ws_row)};
}

bool can_draw() {
  const char* const term = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

/// A run that has not trained yet has no curves.
observe::WatchedRun read_run(const std::string& path) {
  observe::WatchedRun run;
  run.listed = observe::list_run(path, std::time(nullptr));
  const bool has_curves = core::file_exists(path + "/metrics.jsonl") && core::file_exists(path + "/summary.csv");
  if (has_curves) run.record = observe::read_run_record(path);
  return run;
}

std::vector<observe::WatchedRun> read_runs(const std::vector<std::string>& paths) {
  std::vector<observe::WatchedRun> runs;
  for (const std::string& path : paths) runs.push_back(read_run(path));
  return runs;
}

bool all_ended(const std::vector<observe::WatchedRun>& runs) {
  return std::all_of(runs.begin(), runs.end(),
                     [](const observe::WatchedRun& run) { return observe::has_ended(run.listed); });
}

std::string joined(const std::vector<std::string>& lines, const std::string& end) {
  std::string text;
  for (const std::string& line : lines) text += core::printable(line) + end;
  return text;
}

/// Draws over what was drawn before, without flicker.
void draw(const std::vector<observe::WatchedRun>& runs) {
  const TerminalSize size = terminal_size();
  write_page(kHome + joined(observe::watch_view(runs, size.columns, size.rows - 1), std::string(kEraseLine) + "\n") +
             kEraseBelow);
}

std::vector<observe::ListedRun> listed(const std::vector<std::string>& folders) {
  std::vector<observe::ListedRun> runs;
  for (const std::string& folder : folders) {
    for (observe::ListedRun& run : observe::list_runs(folder, std::time(nullptr))) runs.push_back(std::move(run));
  }
  observe::sort_runs(runs);
  return runs;
}

/// Run directories, with the runs below folders that are none themselves in their place, by name.
std::vector<std::string> paths_of(const std::vector<std::string>& folders) {
  std::vector<std::string> runs;
  for (const std::string& folder : folders) {
    std::vector<std::string> below;
    std::error_code unknown;
    if (std::filesystem::is_directory(folder, unknown)) {
      for (const observe::ListedRun& run : listed({folder})) below.push_back(run.path);
    }
    std::sort(below.begin(), below.end());
    if (below.empty()) below.push_back(folder);  // reading it reports the error
    runs.insert(runs.end(), below.begin(), below.end());
  }
  return runs;
}

void print_curves(const std::vector<observe::WatchedRun>& runs, int rows) {
  write_result("-", joined(observe::watch_view(runs, terminal_size().columns, rows), "\n"));
}

/// For a log that is read later: whenever an epoch is over.
void follow_in_lines(const std::vector<std::string>& paths) {
  std::string before;
  while (true) {
    const std::vector<observe::WatchedRun> runs = read_runs(paths);
    std::string epochs;
    for (const observe::WatchedRun& run : runs) {
      epochs += core::format("{} {};", run.listed.epochs_done, run.listed.state);
    }
    if (epochs != before) print_curves(runs, static_cast<int>(runs.size()));
    before = epochs;
    if (all_ended(runs) || std::ferror(stdout) != 0) return;  // or the reader has gone: | head
    core::sleep_unless_stopped(kPause);
  }
}

void follow_on_screen(const std::vector<std::string>& paths) {
  constexpr double kShareOfReading = 5;  // long files are read less often
  write_page(kEraseAll);
  while (true) {
    const auto begin = std::chrono::steady_clock::now();
    const std::vector<observe::WatchedRun> runs = read_runs(paths);
    const double took = core::seconds_since(begin);
    draw(runs);
    if (all_ended(runs) || std::ferror(stdout) != 0) return;
    core::sleep_unless_stopped(std::max(kPause, kShareOfReading * took));
  }
}

/// Writes the page again whenever the runs have got further, and once more when all have ended.
void follow_on_page(const std::vector<std::string>& paths, const std::string& output, const std::string& folder) {
  constexpr int kReload = 10;           // seconds
  constexpr double kShareOfMaking = 5;  // large pages are made less often
  core::log_info("open {} in a browser: it reloads itself until the runs end (Ctrl-C ends this command only)",
                 core::printable(output));
  std::string before;
  while (true) {
    const auto begin = std::chrono::steady_clock::now();
    bool ended = true;
    std::string now;
    for (const std::string& path : paths) {
      const observe::ListedRun run = observe::list_run(path, std::time(nullptr));
      ended = ended && observe::has_ended(run);
      now += core::format("{} {} {};", run.epochs_done, run.updates, run.state);
    }
    if (ended || now != before) write_run_report(paths, output, ended ? 0 : kReload, folder);
    if (ended) return;
    before = now;
    core::sleep_unless_stopped(std::max<double>(kReload / 2.0, kShareOfMaking * core::seconds_since(begin)));
  }
}

Outcome write_page_of(const std::vector<std::string>& folders, const RunsFlags& flags) {
  std::string output = flags.output;
  if (output.empty()) output = folders.size() == 1 ? report_file(folders[0]) : "report.html";
  refuse_output_over_input(output, folders, {".html"});
  const std::vector<std::string> paths = paths_of(folders);
  const std::string folder = folders.size() == 1 ? folders[0] : "";
  if (!flags.follow) {
    write_run_report(paths, output, /*reload_seconds=*/0, folder);
  } else if (output == "-") {
    throw core::Error(core::ErrorKind::usage, "--follow keeps a file up to date, but --output is standard output",
                      "name a file: --output report.html");
  } else {
    follow_on_page(paths, output, folder);
  }
  if (output != "-") core::log_info("written: {}", core::printable(output));
  return {core::kExitOk, "reported"};
}

/// `folders`: of runs, and the store behind them.
Outcome write_to_mlflow(std::vector<std::string> folders, bool follow) {
  if (folders.empty()) {
    throw core::Error(core::ErrorKind::usage, "--to mlflow writes into a folder, and none is named",
                      "train runs RUNS --to mlflow mlruns");
  }
  const std::string store = folders.back();
  folders.pop_back();
  if (folders.empty()) folders.emplace_back("runs");
  std::error_code unknown;
  if (std::filesystem::is_directory(store, unknown) && !observe::list_runs(store, std::time(nullptr)).empty()) {
    throw core::Error(core::ErrorKind::usage,
                      core::format("{} holds runs, it is no folder of MLflow", core::printable(store)),
                      "name the folder last: train runs RUNS --to mlflow mlruns");
  }
  const std::vector<std::string> paths = paths_of(folders);
  for (bool ended = false; !ended;) {
    ended = true;
    for (const std::string& path : paths) ended = observe::write_mlflow_run(path, store) && ended;
    if (!follow) break;
    if (!ended) core::sleep_unless_stopped(5 * kPause);
  }
  core::log_info("written: {} in {}; MLFLOW_ALLOW_FILE_STORE=true mlflow ui --backend-store-uri {} shows them",
                 core::counted(static_cast<int64_t>(paths.size()), "run"), core::printable(store),
                 core::printable(store));
  return {core::kExitOk, "written"};
}

Outcome show_runs(const Context&, const RunsFlags& flags) {
  if (!flags.to.empty()) return write_to_mlflow(flags.folders, flags.follow);
  const std::vector<std::string> folders = flags.folders.empty() ? std::vector<std::string>{"runs"} : flags.folders;
  if (flags.html) return write_page_of(folders, flags);
  if (flags.curves || flags.follow) {
    const std::vector<std::string> paths = paths_of(folders);
    if (!flags.follow) {
      print_curves(read_runs(paths), std::max(terminal_size().rows, 24));
    } else if (can_draw()) {
      follow_on_screen(paths);
    } else {
      follow_in_lines(paths);
    }
    return {core::kExitOk, ""};
  }
  const std::vector<observe::ListedRun> runs = listed(folders);
  write_result("-",
               flags.json ? core::json_page(observe::runs_json(runs)) : core::terminal_text(observe::runs_table(runs)));
  return {core::kExitOk, ""};
}

}  // namespace

Command runs_command() {
  using config::choice_flag, config::flag;
  const auto flags = std::make_shared<RunsFlags>();
  Command command =
      make_command("runs", "[DIR...] [--curves | --follow | --html [--follow] | --to mlflow STORE [--follow]]",
                   "Lists runs, the best of each metric first, with what differs; draws curves, writes HTML reports.",
                   show_runs, flags);
  command.arguments = {config::arguments("DIR", "Folder that holds runs, or a run (default: runs).", flags->folders,
                                         /*is_optional=*/true)};
  command.flags = {
      flag("curves", "Draws the state and the curves of the runs, once.", flags->curves),
      flag("follow,f", "Keeps the curves, or with --html the page, up to date until the runs end.", flags->follow),
      flag("html", "Writes one HTML page about a run, several runs side by side, or all runs below a folder.",
           flags->html),
      config::output_flag(
          "output,o", config::Flag::Writes::file,
          "File of the page (default: report.html in the folder, or here when there are several); - is standard "
          "output.",
          flags->output),
      choice_flag("to", {"mlflow"},
                  "Writes the runs into a folder of MLflow, which is the last DIR; with --follow until the runs end.",
                  flags->to),
      flag("json", "Prints the list as JSON on standard output.", flags->json)};
  return command;
}

// A page about runs, from what they left in their directories.

std::string report_file(const std::string& run_dir) {
  std::string path = run_dir + "/report.html";
  std::error_code ignored;
  if (std::filesystem::is_symlink(path, ignored)) std::filesystem::remove(path, ignored);
  return path;
}

void write_run_report(const std::vector<std::string>& run_dirs, const std::string& output, int reload_seconds,
                      const std::string& folder) {
  std::vector<observe::RunRecord> runs;
  std::string left_out;
  for (const std::string& run_dir : run_dirs) {
    const auto has = [&](const char* name) { return core::file_exists(run_dir + "/" + name); };
    const bool is_waiting = has("status.json") && (!has("metrics.jsonl") || !has("summary.csv"));
    if (!is_waiting) {
      runs.push_back(observe::read_run_record(run_dir));
    } else if (reload_seconds > 0 && run_dirs.size() == 1) {
      runs.emplace_back().path = run_dir;
    } else {
      left_out += (left_out.empty() ? "" : ", ") + core::printable(run_dir);
    }
  }
  if (runs.empty() && reload_seconds > 0) runs.emplace_back().path = run_dirs.at(0);
  if (runs.empty()) runs.push_back(observe::read_run_record(run_dirs.at(0)));  // its error names what is missing
  if (!left_out.empty() && reload_seconds == 0) core::log_warning("no training yet, left out: {}", left_out);
  write_result(output,
               observe::report_page(std::move(runs), "stoker train " STOKER_VERSION, core::utc_text(std::time(nullptr)),
                                    reload_seconds, observe::read_sweep_tables(folder)));
}

}  // namespace stoker::train
