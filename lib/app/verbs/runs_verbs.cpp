// SPDX-License-Identifier: Apache-2.0
// `train ls` and `train watch`: runs, from what they leave in their directories.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <string_view>
#include <thread>

#include "app/app.h"
#include "app/output/result_output.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/file.h"
#include "core/system/stop_signal.h"
#include "core/time/elapsed.h"
#include "observe/runs/run_listing.h"
#include "observe/runs/watch_view.h"

namespace stoker::app {
namespace {

constexpr char kHome[] = "\x1b[H", kEraseLine[] = "\x1b[K", kEraseBelow[] = "\x1b[J", kEraseAll[] = "\x1b[2J";

struct TerminalSize {
  int columns = 100, rows = 40;  ///< where nobody says
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
  for (const std::string& line : lines) text += line + end;
  return text;
}

/// Draws over what was drawn before, without flicker.
void draw(const std::vector<observe::WatchedRun>& runs) {
  const TerminalSize size = terminal_size();
  write_result("-", kHome +
                        joined(observe::watch_view(runs, size.columns, size.rows - 1), std::string(kEraseLine) + "\n") +
                        kEraseBelow);
}

/// Sleeps that long, in pieces, so that a signal ends it soon.
void wait(double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
    core::throw_if_stopped();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace

Outcome list(const Invocation& invocation) {
  const config::CommandLine& command = invocation.configuration.command;
  const std::vector<std::string> folders =
      command.run_dirs.empty() ? std::vector<std::string>{"runs"} : command.run_dirs;
  std::vector<observe::ListedRun> runs;
  for (const std::string& folder : folders) {
    for (observe::ListedRun& run : observe::list_runs(folder, std::time(nullptr))) runs.push_back(std::move(run));
  }
  write_result("-", command.json ? observe::runs_json(runs).dump(1) + "\n" : observe::runs_table(runs));
  return {core::kExitOk, ""};
}

Outcome watch(const Invocation& invocation) {
  constexpr double kPause = 1;           // seconds
  constexpr double kShareOfReading = 5;  // long files are read less often
  const config::CommandLine& command = invocation.configuration.command;
  const bool draws = can_draw() && !command.once;
  if (!draws) {  // once, or whenever an epoch is over: a log can be read later
    std::string before;
    while (true) {
      const std::vector<observe::WatchedRun> runs = read_runs(command.run_dirs);
      std::string epochs;
      for (const observe::WatchedRun& run : runs) {
        epochs += core::format("{} {};", run.listed.epochs_done, run.listed.state);
      }
      const TerminalSize size = terminal_size();
      const int rows = command.once ? std::max(size.rows, 24) : static_cast<int>(runs.size());
      if (epochs != before) write_result("-", joined(observe::watch_view(runs, size.columns, rows), "\n"));
      before = epochs;
      if (command.once || all_ended(runs)) return {core::kExitOk, ""};
      wait(kPause);
    }
  }
  write_result("-", kEraseAll);
  while (true) {
    const auto begin = std::chrono::steady_clock::now();
    const std::vector<observe::WatchedRun> runs = read_runs(command.run_dirs);
    const double took = core::seconds_since(begin);
    draw(runs);
    if (all_ended(runs)) return {core::kExitOk, ""};
    wait(std::max(kPause, kShareOfReading * took));
  }
}

}  // namespace stoker::app
