// SPDX-License-Identifier: Apache-2.0
// `train runs`: runs, from what they leave in their directories.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <thread>

#include "commands/runs/run_report.h"
#include "commands/runs/runs.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/file.h"
#include "core/system/stop_signal.h"
#include "core/time/elapsed.h"
#include "observe/runs/run_listing.h"
#include "observe/runs/watch_view.h"
#include "train/failure/result_output.h"

namespace stoker::train {
namespace {

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

/// Sleeps that long, in pieces, so that a signal ends it soon.
void wait(double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
    core::throw_if_stopped();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
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
    wait(kPause);
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
    wait(std::max(kPause, kShareOfReading * took));
  }
}

/// Writes the page again whenever the runs have got further, and once more when all have ended.
void follow_on_page(const std::vector<std::string>& paths, const std::string& output) {
  constexpr int kReload = 10;           // seconds
  constexpr double kShareOfMaking = 5;  // large pages are made less often
  core::log_info("open {} in a browser: it loads itself again until the runs end (Ctrl-C ends this command only)",
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
    if (ended || now != before) write_run_report(paths, output, ended ? 0 : kReload);
    if (ended) return;
    before = now;
    wait(std::max<double>(kReload / 2.0, kShareOfMaking * core::seconds_since(begin)));
  }
}

Outcome write_page_of(const std::vector<std::string>& folders, const RunsFlags& flags) {
  std::string output = flags.output;
  if (output.empty()) output = folders.size() == 1 ? folders[0] + "/report.html" : "report.html";
  const std::vector<std::string> paths = paths_of(folders);
  if (!flags.follow) {
    write_run_report(paths, output);
  } else if (output == "-") {
    throw core::Error(core::ErrorKind::usage, "--follow keeps a file up to date, but --output is standard output",
                      "name a file: --output report.html");
  } else {
    follow_on_page(paths, output);
  }
  if (output != "-") core::log_info("written: {}", core::printable(output));
  return {core::kExitOk, "reported"};
}

Outcome show_runs(const Context&, const RunsFlags& flags) {
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
  write_result("-", flags.json
                        ? observe::runs_json(runs).dump(1, ' ', false, core::Json::error_handler_t::replace) + "\n"
                        : core::terminal_text(observe::runs_table(runs)));
  return {core::kExitOk, ""};
}

}  // namespace

Command runs_command() {
  using config::flag;
  const auto flags = std::make_shared<RunsFlags>();
  Command command;
  command.name = "runs";
  command.usage = "train runs [DIR...] [--curves | --follow | --html [--follow]]";
  command.summary = "Lists runs below a folder, the best first, with what differs; draws curves, or writes a page.";
  command.words = {config::words("DIR", "Folder that holds runs, or a run (default: runs).", flags->folders,
                                 /*is_optional=*/true)};
  command.flags = {
      flag("curves", "Draws where the runs stand and their curves, once.", flags->curves),
      flag("follow,f", "Draws them until the runs end; with --html keeps the page up to date until then.",
           flags->follow),
      flag("html", "Writes one HTML page about a run, about several side by side, or about all below a folder.",
           flags->html),
      flag("output,o", "FILE",
           "File of the page (default: report.html in the folder, or here when there are several); - is standard "
           "output.",
           flags->output),
      flag("json", "Prints the list as JSON on standard output.", flags->json)};
  attach(command, show_runs, flags);
  return command;
}

}  // namespace stoker::train
