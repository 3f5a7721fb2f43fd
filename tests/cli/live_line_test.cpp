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

std::string without_colour(std::string text) {
  for (size_t at = text.find("\x1b["); at != std::string::npos; at = text.find("\x1b[", at)) {
    text.erase(at, text.find_first_not_of("0123456789;?", at + 2) + 1 - at);
  }
  return text;
}

/// The lines that were drawn while long lines were cut, in order, without colour.
std::vector<std::string> live_lines(const std::string& out) {
  const std::string begins = "\r\x1b[?7l", ends = "\x1b[?7h\x1b[J\r";
  std::vector<std::string> lines;
  for (size_t end = out.find(ends); end != std::string::npos; end = out.find(ends, end + 1)) {
    const size_t begin = out.rfind(begins, end) + begins.size();
    lines.push_back(without_colour(out.substr(begin, end - begin)));
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
  std::string line;  // the first windows may lack a rate, or the CPU's load
  EXPECT_TRUE(program.wait_until([&] {
    const std::vector<std::string> lines = live_lines(program.out());
    if (!lines.empty()) line = lines.back();
    for (const char* const part :
         {"epoch 1/4000", "update ", "ETA ", "loss ", "top1 ", "lr ", " images/s", "data wait ", "CPU: ", "% | RAM:"}) {
      if (line.find(part) == std::string::npos) return false;
    }
    return line.find("n/a") == std::string::npos;
  })) << "the last live line is: "
      << line;
  EXPECT_LE(line.size(), 199u);
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

/// A whole short run on a terminal of `columns` columns.
std::string drawn_run(const Workplace& work, int columns, const Words& more, const std::string& variable = "A=b") {
  write_idx(work, 40);
  Launch launch;
  launch.words = train_words({"--epochs", "3", "--batch-size", "2", "--report-every", "5u"});
  launch.words.insert(launch.words.end(), more.begin(), more.end());
  launch.directory = work.path();
  launch.standard_output = Stream::terminal;
  launch.variables = {"TERM=xterm", variable};
  launch.columns = columns;
  const Ended ended = run(launch);
  EXPECT_EQ(ended.exit_code, 0) << story_of(launch.words, ended);
  return ended.out;
}

TEST(LiveLineTest, HasABarInColourAndARunEndsWithATable) {
  for (const int columns : {80, 40}) {
    const Workplace work;
    const std::string out = drawn_run(work, columns, {}), plain = without_colour(out);
    EXPECT_NE(out.find("\x1b[32m["), std::string::npos) << out;
    for (const std::string& drawn : live_lines(out)) EXPECT_LT(static_cast<int>(drawn.size()), columns) << drawn;
    const size_t table = plain.find("\nbest ");
    ASSERT_NE(table, std::string::npos) << plain;
    for (const char* const row : {"\nlast ", "\ntime ", "\nwhere   run"}) {
      EXPECT_NE(plain.find(row, table), std::string::npos) << row << plain;
    }
    for (const std::string& line : lines_of(plain.substr(table, plain.find("where") - table))) {
      EXPECT_LE(static_cast<int>(line.size()), columns + 1) << line;  // with the terminal's \r
    }
    EXPECT_EQ(plain.find("finished ("), std::string::npos);
    const std::string log = content_of_file(work / "run/train.log");
    EXPECT_EQ(log.find('\x1b'), std::string::npos);
    EXPECT_NE(log.find("finished ("), std::string::npos);
  }
}

TEST(LiveLineTest, ColourBarAndLinesCanBeTurnedOff) {
  const Workplace grey, lines, none;
  EXPECT_EQ(drawn_run(grey, 80, {}, "NO_COLOR=1").find("\x1b[32m"), std::string::npos);
  const std::string plain = drawn_run(lines, 80, {"--progress", "plain"});
  EXPECT_EQ(plain.find('\x1b'), std::string::npos) << plain;
  EXPECT_NE(plain.find("  update 5/20  "), std::string::npos) << plain;
  const std::string off = drawn_run(none, 80, {"--progress", "off"});
  EXPECT_EQ(off.find('\x1b'), std::string::npos) << off;
  EXPECT_EQ(off.find("  update 5/20  "), std::string::npos) << off;
  EXPECT_NE(off.find("epoch 3/3 done"), std::string::npos) << off;
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
  Tmux& operator=(Tmux&&) = delete;  // not copied, not moved

  /// The output of the command, or nothing when there is no tmux.
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
