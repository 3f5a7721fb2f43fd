// SPDX-License-Identifier: Apache-2.0
// Stop requests as schedulers and people send them: at any moment a run ends in order and can be continued
// with.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <thread>

#include "bad_input.h"
#include "exit_codes.h"
#include "long_run.h"

namespace stoker::cli {
namespace {

namespace fs = std::filesystem;

TEST(StopTest, TermSavesAndTheSameCommandEndsWithTheBitsOfAnUnbrokenRun) {
  const Workplace work;
  const Launch launch = long_run(work);
  Program program(launch);
  wait_for_two_epochs(program, work);
  program.send(SIGTERM);
  const Ended ended = program.wait();
  expect_stopped(ended, work, kStopped, "signal:TERM");
  EXPECT_NE(ended.out.find("stopped by SIGTERM at epoch "), std::string::npos) << ended.out;
  expect_same_command_finishes(work, launch.words);

  const Ended unbroken = run(long_run_words({"--run-dir", "unbroken"}), work.path());
  EXPECT_EQ(unbroken.exit_code, 0) << unbroken.err;
  for (const std::string file : {"model.safetensors", "optimizer.safetensors"}) {
    const std::string path = "/checkpoints/last/" + file;
    EXPECT_TRUE(content_of_file(work / ("run" + path)) == content_of_file(work / ("unbroken" + path))) << file;
  }
}

TEST(StopTest, InterruptSavesAndEndsWith130) {
  const Workplace work;
  Program program(long_run(work));
  wait_for_two_epochs(program, work);
  program.send(SIGINT);
  expect_stopped(program.wait(), work, kInterrupted, "signal:INT");
}

TEST(StopTest, SecondInterruptEndsAtOnceAndTheNextStartSweeps) {
  const Workplace work;
  const Launch launch = long_run(work);
  Program program(launch);
  wait_for_two_epochs(program, work);
  program.send(SIGINT);
  program.send(SIGINT);
  EXPECT_EQ(program.wait().exit_code, kInterrupted);
  expect_same_command_finishes(work, launch.words);
}

TEST(StopTest, Usr1SavesAndEndsAsSlurmWarns) {
  const Workplace work;
  Program program(long_run(work));
  wait_for_two_epochs(program, work);
  program.send(SIGUSR1);
  expect_stopped(program.wait(), work, kStopped, "signal:USR1");
}

TEST(StopTest, Usr2SavesAndHangUpIsIgnoredAndTheRunGoesOn) {
  const Workplace work;
  Program program(long_run(work, {"--epochs", "4000"}));
  wait_for_two_epochs(program, work);
  EXPECT_FALSE(fs::exists(work / "run/checkpoints/last"));
  program.send(SIGHUP);
  program.send(SIGUSR2);
  EXPECT_TRUE(program.wait_until([&] { return fs::exists(work / "run/checkpoints/last/manifest.json"); }))
      << program.err();
  const size_t epochs = lines_of(content_of_file(work / "run/summary.csv")).size();
  EXPECT_TRUE(program.wait_until([&] { return has_epochs(work, epochs + 1); })) << program.err();
  program.send(SIGTERM);
  expect_stopped(program.wait(), work, kStopped, "signal:TERM");
}

TEST(StopTest, SignalsOfTheSiteStopAndTheUsualOnesStay) {
  for (const auto& [number, name] : {std::pair{SIGUSR2, "USR2"}, {SIGHUP, "HUP"}, {SIGUSR1, "USR1"}}) {
    const Workplace work;
    Program program(long_run(work, {"--stop-signals", "SIGUSR2,HUP"}));
    wait_for_two_epochs(program, work);
    program.send(number);
    expect_stopped(program.wait(), work, kStopped, std::string("signal:") + name);
  }
  const Workplace work;
  const Ended ended = run(long_run(work, {"--stop-signals", "USR2,KILL"}));
  EXPECT_EQ(ended.exit_code, kUsage) << ended.err;
  EXPECT_NE(ended.err.find(R"("KILL" stops no run; signals: HUP, INT)"), std::string::npos) << ended.err;
}

TEST(StopTest, BeforeTheEndOfTheJobTheRunIsSaved) {
  const Workplace work;
  Launch launch = long_run(work, {"--epochs", "4000", "--save-every", "1e"});
  const auto end_in = [](int64_t seconds) {
    return std::vector<std::string>{"SLURM_JOB_END_TIME=" + std::to_string(std::time(nullptr) + seconds)};
  };
  launch.variables = end_in(16);
  const Ended ended = run(launch);
  expect_stopped(ended, work, kStopped, "job-end");
  EXPECT_NE(ended.out.find("the run saves and stops before"), std::string::npos) << ended.out;
  const std::string log = content_of_file(work / "run/train.log"), measured = " before the end of the job, in ";
  EXPECT_NE(log.find(measured), log.rfind(measured)) << "again with each save that was measured";
  EXPECT_NE(ended.out.find("stopped by the end of the job at epoch "), std::string::npos) << ended.out;
  launch.words = train_words({"--run-dir", "other"});
  launch.variables = end_in(-10);
  EXPECT_EQ(run(launch).exit_code, 0) << "of another job";
}

TEST(StopTest, HangUpOfTheTerminalSavesAndEnds) {
  const Workplace work;
  Launch launch = long_run(work);
  launch.standard_output = Stream::terminal;
  Program program(launch);
  wait_for_two_epochs(program, work);
  program.send(SIGHUP);
  expect_stopped(program.wait(), work, kStopped, "signal:HUP");
}

TEST(StopTest, ExitCodeFollowsTheSite) {
  const Workplace work;
  Program program(long_run(work, {"--stop-exit-code", "143"}));
  wait_for_two_epochs(program, work);
  program.send(SIGTERM);
  expect_stopped(program.wait(), work, 143, "signal:TERM");
}

TEST(StopTest, MaxTimeEndsEachStartInOrderUntilTheRunIsDone) {
  const Workplace work;
  const Launch launch = long_run(work, {"--max-time", "1.5s"});
  int starts = 1;
  Ended ended = run(launch);
  EXPECT_EQ(ended.exit_code, kStopped) << story_of(launch.words, ended);
  EXPECT_EQ(last_line(ended.err).rfind("train: exit=75 reason=max-time update=", 0), 0u) << ended.err;
  for (; ended.exit_code == kStopped && starts < 100; ++starts) ended = run(launch);
  EXPECT_EQ(ended.exit_code, 0) << story_of(launch.words, ended);
  EXPECT_GT(starts, 1);
  expect_already_finished(work, launch.words);
}

/// One start that is stopped after `seconds`, wherever it is by then.
void expect_early_stop_is_harmless(const Workplace& work, const Launch& launch, double seconds) {
  Program program(launch);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const bool handled = program.handles(SIGTERM);
  program.send(SIGTERM);
  const Ended ended = program.wait();
  SCOPED_TRACE(std::to_string(seconds) + " s\n" + story_of(launch.words, ended));
  expect_nothing_half_written(work);
  if (ended.signal == SIGTERM) {  // before the handlers: then nothing had been written either
    EXPECT_FALSE(handled);
    EXPECT_FALSE(fs::exists(work / "run"));
    return;
  }
  EXPECT_EQ(ended.exit_code, kStopped);
  EXPECT_EQ(last_line(ended.err).rfind("train: exit=75 reason=signal:TERM", 0), 0u);
}

TEST(StopTest, TermDuringStartUpIsHarmless) {
  Launch version;
  version.words = {"--version"};
  const double start_seconds = run(version).wall_seconds;
  for (const double share : {0.0, 0.5, 0.9, 1.0, 1.05, 1.1, 1.2, 1.4}) {
    const Workplace work;
    Launch launch = long_run(work);
    expect_early_stop_is_harmless(work, launch, share * start_seconds);
  }
}

TEST(StopTest, TermAsSoonAsItIsHandledEndsWith75) {
  const Workplace work;
  Launch launch = long_run(work);
  Program program(launch);
  ASSERT_TRUE(program.wait_until([&] { return program.handles(SIGTERM); })) << program.err();
  program.send(SIGTERM);
  const Ended ended = program.wait();
  EXPECT_EQ(ended.exit_code, kStopped) << story_of(launch.words, ended);
  EXPECT_EQ(last_line(ended.err).rfind("train: exit=75 reason=signal:TERM", 0), 0u) << ended.err;
}

TEST(StopTest, TermBetweenLockAndFirstUpdateEndsWith75) {
  const Workplace work;
  const Launch launch = long_run(work);
  Program program(launch);
  ASSERT_TRUE(program.wait_until([&] { return fs::exists(work / "run/.lock"); })) << program.err();
  program.send(SIGTERM);
  const Ended ended = program.wait();
  EXPECT_EQ(ended.exit_code, kStopped) << story_of(launch.words, ended);
  EXPECT_EQ(last_line(ended.err).rfind("train: exit=75 reason=signal:TERM", 0), 0u) << ended.err;
  expect_same_command_finishes(work, launch.words);
}

TEST(StopTest, StopOfEvaluationNeedsNoCheckpoint) {
  const Workplace work;
  write_idx(work);
  ASSERT_EQ(run(train_words(), work.path()).exit_code, 0);
  const std::string before = listing_of(work / "run/checkpoints");
  // Many images, so that it is under way when the signal comes.
  work.write("data/big-images-idx3-ubyte", idx_images(200'000));
  work.write("data/big-labels-idx1-ubyte", idx_labels(200'000));
  Launch launch;
  launch.words = {"eval", "run", "--split", "big", "--threads", "1", "--num-workers", "1"};
  launch.directory = work.path();
  Program program(launch);
  ASSERT_TRUE(program.wait_until([&] { return program.handles(SIGTERM); })) << program.err();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  program.send(SIGTERM);
  const Ended ended = program.wait();
  SCOPED_TRACE(story_of(launch.words, ended));
  EXPECT_EQ(ended.exit_code, kStopped);
  EXPECT_EQ(last_line(ended.err).rfind("train: exit=75 reason=signal:TERM", 0), 0u);
  EXPECT_EQ(ended.out, "") << "no half results";
  EXPECT_EQ(listing_of(work / "run/checkpoints"), before);
}

}  // namespace
}  // namespace stoker::cli
