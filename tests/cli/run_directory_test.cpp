// SPDX-License-Identifier: Apache-2.0
// The life of a run directory: one process at a time, consoles that go away, files that can be given back.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <ostream>

#include "bad_input.h"
#include "exit_codes.h"
#include "finished_run.h"
#include "long_run.h"

namespace stoker::cli {
namespace {

namespace fs = std::filesystem;

TEST(RunDirectoryTest, SecondProcessIsRefusedAndTheFirstGoesOn) {
  const Workplace work;
  const Launch launch = long_run(work, {"--epochs", "4000"});
  Program first(launch);
  wait_for_two_epochs(first, work);
  const std::string log = content_of_file(work / "run/train.log");
  const Ended second = run(launch);
  SCOPED_TRACE(story_of(launch.words, second));
  EXPECT_EQ(second.exit_code, kInUse);
  EXPECT_NE(second.err.find("another process uses this run directory (run/.lock): pid " + std::to_string(first.pid()) +
                            " on "),
            std::string::npos);
  EXPECT_EQ(last_line(second.err), "train: exit=82 reason=error");
  EXPECT_EQ(content_of_file(work / "run/train.log").find("another process"), std::string::npos);
  first.send(SIGTERM);
  expect_stopped(first.wait(), work, 75, "signal:TERM");
}

TEST(RunDirectoryTest, IsFreeAgainAtOnceWhenItsHolderIsKilled) {
  const Workplace work;
  const Launch launch = long_run(work);
  Program first(launch);
  wait_for_two_epochs(first, work);
  first.send(SIGKILL);
  EXPECT_EQ(first.wait().signal, SIGKILL);
  expect_same_command_finishes(work, launch.words);
}

TEST(RunDirectoryTest, HoldsAFileForEachPurpose) {
  const Workplace work;
  place_finished_run(work);
  for (const std::string name : {"config.yaml", "summary.csv", "metrics.jsonl", "train.log", "status.json",
                                 "checkpoints/last/manifest.json", "checkpoints/best/model.safetensors"}) {
    EXPECT_TRUE(fs::exists(work / ("run/" + name))) << name;
  }
  EXPECT_NE(content_of_file(work / "run/status.json").find("\"state\": \"finished\""), std::string::npos);
  EXPECT_EQ(lines_of(content_of_file(work / "run/summary.csv")).size(), 3u);
}

TEST(RunDirectoryTest, ItsConfigGivesTheSameRunBack) {
  const Workplace work;
  place_finished_run(work);
  fs::copy_file(work / "run/config.yaml", work / "again.yaml");
  for (const std::string file : {"run/config.yaml", "again.yaml"}) {
    const Words words = {"-c", file};
    const Ended ended = run(words, work.path());
    SCOPED_TRACE(story_of(words, ended));
    EXPECT_EQ(ended.exit_code, 0);
    EXPECT_EQ(without_result(last_line(ended.err)),
              "train: exit=0 reason=already-finished update=8 checkpoint=run/checkpoints/step-00000008");
  }
}

TEST(RunDirectoryTest, FreshDirectoryIsNamedAfterTheData) {
  const Workplace work;
  write_idx(work);
  const Words words = {"--data-dir", "data", "--model",  "small_cnn", "--width",       "8",
                       "--threads",  "1",    "--epochs", "1",         "--num-workers", "0"};
  const Ended ended = run(words, work.path());
  EXPECT_EQ(ended.exit_code, 0) << story_of(words, ended);
  EXPECT_TRUE(fs::exists(work / "runs/data/summary.csv"));
}

/// The text without comments, which name the origin of each value, and trailing spaces.
std::string without_origins(const std::string& yaml) {
  std::string text;
  for (std::string line : lines_of(yaml)) {
    line = line.substr(0, line.find(" # "));
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

TEST(PrintConfigTest, ReadsBackToTheSameText) {
  const Workplace work;
  write_idx(work);
  const Ended first = run(train_words({"--print-config", "--lr", "0.3", "--hflip", "0.25"}), work.path());
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_NE(first.out.find("lr: 0.3"), std::string::npos);
  work.write("a.yaml", first.out);
  const Ended second = run({"-c", "a.yaml", "--print-config"}, work.path());
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(without_origins(second.out), without_origins(first.out));
  work.write("b.yaml", without_origins(second.out));
  const Ended third = run({"-c", "b.yaml", "--print-config"}, work.path());
  EXPECT_EQ(without_origins(third.out), without_origins(first.out)) << third.err;
  EXPECT_FALSE(fs::exists(work / "run"));
}

TEST(PrintConfigTest, ThatDoesNotArriveIsAnError) {
  const Workplace work;
  write_idx(work);
  Launch launch;
  launch.words = train_words({"--print-config"});
  launch.directory = work.path();
  launch.standard_output = Stream::full;
  const Ended ended = run(launch);
  EXPECT_EQ(ended.exit_code, 74) << story_of(launch.words, ended);
  EXPECT_NE(ended.err.find("cannot write standard output: No space left on device"), std::string::npos);
}

TEST(DryRunTest, ChecksEverythingAndLeavesNothing) {
  const Workplace work;
  write_idx(work);
  const std::string before = listing_of(work.path());
  const Ended ended = run(train_words({"--dry-run"}), work.path());
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_NE(ended.out.find("64 training and 20 validation images, 10 classes"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("= 16 per update"), std::string::npos) << ended.out;
  EXPECT_EQ(last_line(ended.err), "train: exit=0 reason=dry-run");
  EXPECT_EQ(listing_of(work.path()), before);
}

TEST(DryRunTest, ResumingFromAnOlderCheckpointMovesNothing) {
  const Workplace work;
  place_finished_run(work);
  const std::string before = listing_of(work.path());
  const Words words = finished_run_words({"--dry-run", "--resume", "run/checkpoints/step-00000004"});
  const Ended ended = run(words, work.path());
  EXPECT_EQ(ended.exit_code, 0) << story_of(words, ended);
  EXPECT_NE(ended.out.find("resumes run/checkpoints/step-00000004"), std::string::npos) << story_of(words, ended);
  EXPECT_EQ(listing_of(work.path()), before);
}

struct Consoles {
  const char* fact;
  Stream out, err;
};

void PrintTo(const Consoles& consoles, std::ostream* out) { *out << consoles.fact; }

class LostConsole : public ::testing::TestWithParam<Consoles> {};

/// No file of the run took the number of a closed stream, and the console's text with it.
void expect_banner_only_in_the_log(const std::string& run_dir) {
  for (const auto& entry : fs::recursive_directory_iterator(run_dir)) {
    if (!entry.is_regular_file()) continue;
    const bool has_banner = content_of_file(entry.path().string()).find("stoker train ") != std::string::npos;
    const bool expected = entry.path().filename() == "train.log";
    EXPECT_EQ(has_banner, expected) << entry.path();
  }
}

TEST_P(LostConsole, IsNoReasonToStop) {
  const Workplace work;
  write_idx(work);
  Launch launch;
  launch.words = train_words({"--epochs", "3", "--report-every", "1u"});
  launch.directory = work.path();
  launch.standard_output = GetParam().out;
  launch.standard_error = GetParam().err;
  const Ended ended = run(launch);
  EXPECT_EQ(ended.exit_code, 0) << story_of(launch.words, ended);
  EXPECT_NE(content_of_file(work / "run/train.log").find("finished (epochs-done) after 3 epochs, 12 updates"),
            std::string::npos);
  EXPECT_EQ(lines_of(content_of_file(work / "run/summary.csv")).size(), 4u);
  expect_banner_only_in_the_log(work / "run");
  const Ended again = run(launch.words, work.path());
  EXPECT_EQ(without_result(last_line(again.err)),
            "train: exit=0 reason=already-finished update=12 checkpoint=run/checkpoints/step-00000012");
}

INSTANTIATE_TEST_SUITE_P(Stream, LostConsole,
                         ::testing::Values(Consoles{"OutputClosed", Stream::closed, Stream::captured},
                                           Consoles{"BothClosed", Stream::closed, Stream::closed},
                                           Consoles{"BrokenPipes", Stream::broken_pipe, Stream::broken_pipe},
                                           Consoles{"FullDisk", Stream::full, Stream::full}),
                         [](const auto& tested) { return tested.param.fact; });

TEST(ConsoleTest, GivesAFilePlainLinesWhateverTheTerminal) {
  const Workplace work;
  write_idx(work);
  Launch launch;
  launch.words = train_words({"--epochs", "3", "--report-every", "1u"});
  launch.directory = work.path();
  launch.variables = {"TERM=xterm"};
  const Ended ended = run(launch);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(ended.out.find('\x1b'), std::string::npos) << ended.out;
  EXPECT_EQ(ended.out.find('\r'), std::string::npos) << ended.out;
}

TEST(ConsoleTest, QuietLeavesTheLastLineAndWarnings) {
  const Workplace work;
  write_idx(work);
  const Ended ended = run(train_words({"--quiet"}), work.path());
  EXPECT_EQ(ended.out, "");
  std::vector<std::string> lines = lines_of(without_result(ended.err));
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines.back(), "train: exit=0 reason=epochs-done update=4 checkpoint=run/checkpoints/step-00000004");
  lines.pop_back();
  for (const std::string& line : lines) EXPECT_EQ(line.rfind("warning: ", 0), 0u) << line;  // of speed, perhaps
}

Launch on_terminal(const Workplace& work, const std::string& kind) {
  write_idx(work);
  Launch launch;
  launch.words = train_words({"--epochs", "20", "--report-every", "1u", "--save-every", "never"});
  launch.directory = work.path();
  launch.standard_output = Stream::terminal;
  launch.variables = {"TERM=" + kind};
  return launch;
}

TEST(TerminalTest, ShowsALineThatIsRewrittenAndTakesItAwayAtTheEnd) {
  const Workplace work;
  const Ended ended = run(on_terminal(work, "xterm"));
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  const size_t last_erased = ended.out.rfind("\r\x1b[J");
  ASSERT_NE(last_erased, std::string::npos) << ended.out;
  EXPECT_NE(ended.out.substr(last_erased).find("20 epochs  80 updates  (epochs-done)"), std::string::npos) << ended.out;
  EXPECT_EQ(content_of_file(work / "run/train.log").find('\x1b'), std::string::npos);
}

TEST(TerminalTest, GetsPlainLinesWhenItCannotRewrite) {
  const Workplace work;
  const Ended ended = run(on_terminal(work, "dumb"));
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(ended.out.find('\x1b'), std::string::npos) << ended.out;
}

}  // namespace
}  // namespace stoker::cli
