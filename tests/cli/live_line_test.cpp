// SPDX-License-Identifier: Apache-2.0
// The live line on terminals of different widths, resized while the program runs, and its absence elsewhere.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "long_run.h"

namespace stoker::cli {
namespace {

/// Many short updates in epochs that outlast the test, so that no other line comes between.
Launch endless_run(const Workplace& work, int columns) {
  write_idx(work, 4000);
  Launch launch;
  launch.words =
      train_words({"--epochs", "4000", "--batch-size", "2", "--report-every", "5u", "--save-every", "never"});
  launch.directory = work.path();
  launch.standard_output = Stream::terminal;
  launch.variables = {"TERM=xterm"};
  launch.columns = columns;
  return launch;
}

/// What was drawn while long lines were cut, in order.
std::vector<std::string> live_lines(const std::string& out) {
  const std::string begins = "\r\x1b[?7l", ends = "\x1b[?7h\x1b[J\r";
  std::vector<std::string> lines;
  for (size_t end = out.find(ends); end != std::string::npos; end = out.find(ends, end + 1)) {
    const size_t begin = out.rfind(begins, end) + begins.size();
    lines.push_back(out.substr(begin, end - begin));
  }
  return lines;
}

/// The last live line, once it holds `part` and none of `absent`.
std::string await_live(Program& program, const std::string& part, const std::string& absent = "\n") {
  std::string last;
  EXPECT_TRUE(program.wait_until([&] {
    const std::vector<std::string> lines = live_lines(program.out());
    if (!lines.empty()) last = lines.back();
    return last.find(part) != std::string::npos && last.find(absent) == std::string::npos;
  })) << "no live line with "
      << part << ", the last one is: " << last;
  return last;
}

TEST(LiveLineTest, HasEveryFigureAt200Columns) {
  const Workplace work;
  Program program(endless_run(work, 200));
  const std::string line = await_live(program, "CPU: ", "n/a");
  EXPECT_LE(line.size(), 199u);
  for (const char* const part :
       {"epoch 1/4000", "update ", "ETA ", "loss ", "top1 ", "lr ", " images/s", "data wait ", "CPU: ", "% | RAM:"}) {
    EXPECT_NE(line.find(part), std::string::npos) << part << " in " << line;
  }
}

TEST(LiveLineTest, KeepsTheMostImportantFiguresAt80Columns) {
  const Workplace work;
  Program program(endless_run(work, 80));
  const std::string line = await_live(program, " images/s");
  for (const std::string& drawn : live_lines(program.out())) EXPECT_LE(drawn.size(), 79u) << drawn;
  for (const char* const part : {"epoch 1/4000", "update ", "ETA ", "loss ", " images/s"}) {
    EXPECT_NE(line.find(part), std::string::npos) << part << " in " << line;
  }
  EXPECT_EQ(line.find("n/a"), std::string::npos) << line;
}

TEST(LiveLineTest, FollowsATerminalThatIsResized) {
  const Workplace work;
  Program program(endless_run(work, 200));
  await_live(program, "RAM:");
  program.resize(40);
  await_live(program, "epoch 1/", "RAM:");
  const size_t before = live_lines(program.out()).size();
  await_live(program, "loss ");
  const std::vector<std::string> lines = live_lines(program.out());
  for (size_t i = before; i < lines.size(); ++i) EXPECT_LE(lines[i].size(), 39u) << lines[i];
  program.resize(200);
  await_live(program, "RAM:");
}

TEST(LiveLineTest, DoesNotExistUnderCron) {
  const Workplace work;
  Launch launch = endless_run(work, 0);
  launch.words.insert(launch.words.end(), {"--max-updates", "200", "--log-level", "debug"});
  launch.standard_output = Stream::captured;
  launch.empty_environment = true;
  launch.variables.clear();
  const Ended ended = run(launch);
  EXPECT_EQ(ended.exit_code, 0) << story_of(launch.words, ended);
  for (const char byte : ended.out + ended.err) ASSERT_TRUE(byte == '\n' || byte >= ' ') << static_cast<int>(byte);
  EXPECT_NE(ended.out.find("  RAM:"), std::string::npos) << ended.out;
}

/// A terminal multiplexer as people use it: it keeps a screen, and breaks lines anew when it is resized.
class Tmux {
 public:
  Tmux() : socket_("stoker-test-" + std::to_string(::getpid())) {}
  ~Tmux() { run("kill-server"); }
  Tmux(const Tmux&) = delete;
  Tmux& operator=(const Tmux&) = delete;

  /// What the command prints, or nothing when there is no tmux.
  std::string run(const std::string& command) const {
    const std::string line = "tmux -L " + socket_ + " -f /dev/null " + command + " 2>/dev/null";
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen(line.c_str(), "r"), ::pclose);
    std::string text;
    std::array<char, 4096> block{};
    for (size_t got; pipe && (got = std::fread(block.data(), 1, block.size(), pipe.get())) > 0;) {
      text.append(block.data(), got);
    }
    return text;
  }
  std::vector<std::string> screen() const { return lines_of(run("capture-pane -p")); }

 private:
  const std::string socket_;
};

/// Rows of the screen with a piece of a live line: all of them have ETA, and nothing else does.
std::vector<std::string> rows_with_live(const Tmux& tmux) {
  std::vector<std::string> rows;
  for (const std::string& row : tmux.screen()) {
    if (row.find("ETA ") != std::string::npos) rows.push_back(row);
  }
  return rows;
}

/// Polls until the screen has a single live line, no piece of an older one, that holds `part` and not `absent`.
std::string await_screen(const Tmux& tmux, const std::string& part, const std::string& absent) {
  for (int i = 0; i < 600; ++i) {
    const std::vector<std::string> rows = rows_with_live(tmux);
    if (rows.size() == 1 && rows[0].find(part) != std::string::npos && rows[0].find(absent) == std::string::npos) {
      return rows[0];
    }
    ::usleep(50'000);
  }
  return "";
}

std::string whole_screen(const Tmux& tmux) {
  std::string text;
  for (const std::string& row : tmux.screen()) text += row + "\n";
  return text;
}

TEST(LiveLineTest, LeavesNoTraceInTmuxWhenResized) {
  const Tmux tmux;
  if (tmux.run("-V").empty()) GTEST_SKIP() << "no tmux here";
  const Workplace work;
  const Launch launch = endless_run(work, 0);
  std::string command = "exec " STOKER_TRAIN_PROGRAM;
  for (const std::string& word : launch.words) command += " " + word;
  tmux.run("new-session -d -x 80 -y 24 'cd " + work.path() + " && OMP_NUM_THREADS=1 " + command + "'");

  const std::string narrow = await_screen(tmux, "images/s", "RAM:");
  EXPECT_FALSE(narrow.empty()) << whole_screen(tmux);
  EXPECT_LE(narrow.size(), 79u);
  tmux.run("resize-window -x 200");
  EXPECT_FALSE(await_screen(tmux, "RAM:", "\n").empty()) << whole_screen(tmux);
  tmux.run("resize-window -x 80");
  EXPECT_FALSE(await_screen(tmux, "images/s", "RAM:").empty()) << whole_screen(tmux);
}

}  // namespace
}  // namespace stoker::cli
