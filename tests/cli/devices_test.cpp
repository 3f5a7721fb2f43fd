// SPDX-License-Identifier: Apache-2.0
// One run by several processes: the bits of one process, and every end of one rank is the end of all.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <memory>
#include <regex>
#include <thread>

#include "bad_input.h"
#include "exit_codes.h"
#include "long_run.h"

namespace stoker::cli {
namespace {

constexpr int kPeerLost = 76;

/// A run of 4 replicas by `devices` processes.
Words sharded(int devices, const Words& more = {}) {
  Words words = {"--replicas", "4", "--devices", std::to_string(devices)};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::string saved(const Workplace& work, const std::string& run_dir) {
  std::string bytes;
  for (const std::string file : {"model.safetensors", "optimizer.safetensors"}) {
    bytes += content_of_file(work / (run_dir + "/checkpoints/last/" + file));
  }
  return bytes;
}

/// Bytes that a process may take according to a plan: of "memory    host 187.7 MB of 6.3 GB".
double memory_for(const std::string& plan) {
  std::smatch found;
  if (!std::regex_search(plan, found, std::regex("memory    host [0-9.]+ .B of ([0-9.]+) (.)B"))) return 0;
  const double unit = found[2] == "T" ? 1e12 : found[2] == "G" ? 1e9 : 1e6;
  return std::stod(found[1]) * unit;
}

bool is_there(pid_t process) {
  const std::string stat = content_of_file("/proc/" + std::to_string(process) + "/stat");
  return !stat.empty() && stat.find(") Z ") == std::string::npos;
}

TEST(DevicesTest, AnyNumberOfProcessesEndsWithTheSameBits) {
  const Workplace work;
  write_idx(work, /*train_images=*/70);  // a last batch that none of them divides evenly
  const Words common = {"--batch-size", "3", "--epochs",     "3",  "--model-ema",  "--mixup", "0.2",
                        "--clip-grad",  "1", "--freeze-for", "3u", "--precise-bn", "24"};
  for (const int devices : {1, 2, 4}) {
    Words words = train_words(sharded(devices, common));
    words.insert(words.end(), {"--run-dir", "run" + std::to_string(devices)});
    const Ended ended = run(words, work.path());
    ASSERT_EQ(ended.exit_code, 0) << story_of(words, ended);
    EXPECT_EQ(last_line(ended.err).rfind("train: exit=0 reason=epochs-done update=", 0), 0u) << ended.err;
    EXPECT_EQ(ended.out.find("\nmodel  "), ended.out.rfind("\nmodel  ")) << "the banner is rank 0's alone\n"
                                                                         << ended.out;
  }
  EXPECT_FALSE(saved(work, "run1").empty());
  EXPECT_TRUE(saved(work, "run2") == saved(work, "run1"));
  EXPECT_TRUE(saved(work, "run4") == saved(work, "run1"));
  EXPECT_TRUE(std::filesystem::exists(work / "run4/train.rank-3.log"));
}

TEST(DevicesTest, BatchNormsThatAreSharedLearnAsOneProcessWithTheWholeBatch) {
  const Workplace work;
  write_idx(work, /*train_images=*/70);
  const auto losses = [&](const Words& more, const std::string& run_dir) {
    Words words = train_words({"--epochs", "2", "--lr", "0.01", "--run-dir", run_dir});
    words.insert(words.end(), more.begin(), more.end());
    const Ended ended = run(words, work.path());
    EXPECT_EQ(ended.exit_code, 0) << story_of(words, ended);
    const std::vector<std::string> rows = lines_of(content_of_file(work / (run_dir + "/summary.csv")));
    std::vector<double> found;
    for (size_t i = 1; i < rows.size(); ++i) {
      std::string cells = rows[i].substr(rows[i].find(',') + 1);
      found.push_back(std::stod(cells));                              // of training
      found.push_back(std::stod(cells.substr(cells.find(',') + 1)));  // of validation
    }
    return found;
  };
  const auto whole = losses({"--batch-size", "16"}, "whole");
  const auto shared = losses({"--batch-size", "8", "--devices", "2", "--sync-bn"}, "shared");
  const auto apart = losses({"--batch-size", "8", "--devices", "2"}, "apart");
  ASSERT_EQ(whole.size(), 4u);
  ASSERT_EQ(shared.size(), 4u);
  double largest = 0;
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(shared[i], whole[i], 1e-3 * whole[i]) << i;
    largest = std::max(largest, std::abs(apart[i] - whole[i]) / whole[i]);
  }
  EXPECT_GT(largest, 1e-2) << "statistics of half a batch are others";
}

TEST(DevicesTest, ReportsCoverAllRanks) {
  const Workplace work;
  write_idx(work);
  const Words words = train_words(sharded(2, {"--batch-size", "4", "--report-every", "2u"}));
  const Ended ended = run(words, work.path());
  ASSERT_EQ(ended.exit_code, 0) << story_of(words, ended);
  EXPECT_NE(ended.out.find("slowest of 2 ranks: "), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("  2 ranks: exchange "), std::string::npos) << "below each epoch\n" << ended.out;
  const std::string records = content_of_file(work / "run/metrics.jsonl");
  EXPECT_NE(records.find("\"ranks\":{\"exchange_share\":"), std::string::npos) << records;
}

TEST(DevicesTest, AStoppedRunGoesOnWithAnotherNumberOfProcesses) {
  const Workplace work;
  const Words short_epochs = {"--batch-size", "4"};
  Program program(long_run(work, sharded(2, short_epochs)));
  ASSERT_TRUE(program.wait_until([&] { return has_epochs(work, 2); })) << program.err();
  program.send(SIGTERM);
  const Ended ended = program.wait();
  EXPECT_EQ(ended.exit_code, kStopped) << ended.out << ended.err;
  EXPECT_EQ(last_line(ended.err).rfind("train: exit=75 reason=signal:TERM update=", 0), 0u) << ended.err;
  const Ended rest = run(long_run_words(sharded(4, short_epochs)), work.path());
  EXPECT_EQ(rest.exit_code, 0) << rest.err;
  const Ended unbroken = run(long_run_words(sharded(1, {"--batch-size", "4", "--run-dir", "unbroken"})), work.path());
  EXPECT_EQ(unbroken.exit_code, 0) << unbroken.err;
  EXPECT_TRUE(saved(work, "run") == saved(work, "unbroken"));
}

TEST(DevicesTest, ASignalThatComesBeforeRanksCanHandleItIsNoLostRank) {
  const Workplace work;
  Program program(long_run(work, sharded(4)));
  ASSERT_TRUE(program.wait_until([&] { return children_of(program.pid()).size() == 4; })) << program.err();
  program.send(SIGTERM);
  const Ended ended = program.wait();
  EXPECT_EQ(ended.exit_code, kStopped) << ended.out << ended.err;
  EXPECT_EQ(last_line(ended.err).rfind("train: exit=75 reason=signal:TERM", 0), 0u) << ended.err;
}

/// A signal goes to one rank after the other: one may end, and break off what another waits for, before that has its
/// own.
TEST(DevicesTest, AStopOfOneRankBeforeTrainingIsNoLostRank) {
  for (const size_t first : {0, 1}) {
    const Workplace work;
    Program program(long_run(work, sharded(2)));
    const auto are_in_setup = [&] { return std::filesystem::exists(work / "run/train.rank-1.log"); };
    ASSERT_TRUE(program.wait_until(are_in_setup)) << program.err();
    const std::vector<pid_t> ranks = children_of(program.pid());
    ASSERT_EQ(ranks.size(), 2u);
    ::kill(ranks[first], SIGTERM);
    const Ended ended = program.wait();
    EXPECT_EQ(ended.exit_code, kStopped) << ended.out << ended.err;
    EXPECT_EQ(last_line(ended.err).rfind("train: exit=75 reason=signal:TERM", 0), 0u) << ended.err;
  }
}

TEST(DevicesTest, AKilledRankEndsAllWith76AndIsNamed) {
  const Workplace work;
  Program program(long_run(work, sharded(4)));
  ASSERT_TRUE(program.wait_until([&] { return has_epochs(work, 2); })) << program.err();
  const std::vector<pid_t> ranks = children_of(program.pid());
  ASSERT_EQ(ranks.size(), 4u);
  ::kill(ranks[2], SIGKILL);
  const Ended ended = program.wait();
  EXPECT_EQ(ended.exit_code, kPeerLost) << ended.err;
  EXPECT_NE(ended.err.find("rank 2 (process " + std::to_string(ranks[2]) + ") was killed by signal 9"),
            std::string::npos)
      << ended.err;
  EXPECT_EQ(last_line(ended.err), "train: exit=76 reason=error");
  for (const pid_t rank : ranks) EXPECT_FALSE(is_there(rank));
  expect_nothing_half_written(work);
}

TEST(DevicesTest, NoRankOutlivesTheCommandThatStartedIt) {
  const Workplace work;
  Program program(long_run(work, sharded(2)));
  ASSERT_TRUE(program.wait_until([&] { return has_epochs(work, 2); })) << program.err();
  const std::vector<pid_t> ranks = children_of(program.pid());
  ASSERT_EQ(ranks.size(), 2u);
  program.send(SIGKILL);
  program.wait();
  for (int tries = 0; tries < 600 && (is_there(ranks[0]) || is_there(ranks[1])); ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  for (const pid_t rank : ranks) EXPECT_FALSE(is_there(rank));
}

TEST(DevicesTest, ABadImageOfOneRankEndsAllWithItsCodeAndMessage) {
  const Workplace work;
  write_folders(work);
  work.write("data/train/dog/torn.png", "\x89PNG\r\n\x1a\n and no more");
  work.write("data/train/dog/whole.png", png_of(9, 7, 50));  // no last batch of one
  const Words words = train_words({"--batch-size", "2", "--img-size", "8", "--replicas", "4", "--devices", "4"});
  const Ended ended = run(words, work.path());
  EXPECT_EQ(ended.exit_code, kData) << ended.err;
  EXPECT_NE(ended.err.find("bad image "), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("torn.png"), std::string::npos) << ended.err;
  EXPECT_EQ(last_line(ended.err), "train: exit=65 reason=error") << ended.err;
}

TEST(DevicesTest, BadImagesOfAllRanksCountAgainstMaxBad) {
  const Workplace work;
  write_folders(work);
  for (const char* const name : {"a", "b", "c", "d"}) {
    work.write(std::string("data/train/dog/") + name + ".png", "\x89PNG\r\n\x1a\n and no more");
  }
  for (const auto& [most, code] : std::map<std::string, int>{{"3", kData}, {"4", 0}}) {
    for (const int devices : {1, 4}) {
      const Words words = train_words({"--batch-size", "2", "--img-size", "8", "--replicas", "4", "--devices",
                                       std::to_string(devices), "--on-bad-image", "skip," + std::string(most),
                                       "--run-dir", "run" + std::to_string(devices) + most});
      const Ended ended = run(words, work.path());
      EXPECT_EQ(ended.exit_code, code) << story_of(words, ended);
      if (code != 0) {
        EXPECT_NE(ended.err.find("4 bad images, more than the 3 of --on-bad-image skip; the last is "),
                  std::string::npos)
            << ended.err;
      } else {
        EXPECT_NE((ended.out + ended.err).find("skipped a bad image (4 of at most 4)"), std::string::npos)
            << "rank 0 counts those of all";
      }
    }
  }
}

TEST(DevicesTest, AFullDiskOfRank0EndsAllWithItsCodeAndMessage) {
  const Workplace work;
  write_idx(work);
  std::filesystem::create_directories(work / "small");
  Launch launch;
  launch.words = train_words(sharded(2, {"--batch-size", "4", "--run-dir", "small/run", "--no-space-check"}));
  launch.directory = work.path();
  launch.small_disk = work / "small";
  const Ended ended = run(launch);
  if (ended.exit_code == kCannotStart) GTEST_SKIP() << "may not mount";
  EXPECT_EQ(ended.exit_code, kIo) << ended.err;
  EXPECT_NE(ended.err.find("No space left on device"), std::string::npos) << ended.err;
  EXPECT_EQ(last_line(ended.err), "train: exit=74 reason=error") << ended.err;
}

TEST(DevicesTest, AStoppedRankIsLostWithinTheTimeoutAndIsNamed) {
  const Workplace work;
  Program program(long_run(work, sharded(4, {"--exchange-timeout", "20s", "--epochs", "100000"})));
  ASSERT_TRUE(program.wait_until([&] { return has_epochs(work, 2); })) << program.err();
  const std::vector<pid_t> ranks = children_of(program.pid());
  ASSERT_EQ(ranks.size(), 4u);
  ::kill(ranks[1], SIGSTOP);
  const Ended ended = program.wait();
  EXPECT_EQ(ended.exit_code, kPeerLost) << ended.err;
  EXPECT_NE(ended.err.find("error: rank 1 has sent no heartbeat for "), std::string::npos) << ended.err;
  for (const pid_t rank : ranks) EXPECT_FALSE(is_there(rank));
}

TEST(DevicesTest, RestartsGoOnFromTheNewestCheckpointAfterALostRank) {
  const Workplace work;
  Program program(long_run(work, sharded(2, {"--batch-size", "4", "--save-every", "3u", "--restarts", "1"})));
  ASSERT_TRUE(program.wait_until([&] { return has_epochs(work, 2); })) << program.err();
  ::kill(children_of(program.pid()).back(), SIGKILL);
  const Ended ended = program.wait();
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_NE(ended.err.find("starting all ranks again from the newest checkpoint (1 of 1 restarts)"), std::string::npos)
      << ended.err;
  EXPECT_NE(ended.out.find("restart 1 of 1 after a lost rank"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find(", resumes "), std::string::npos) << ended.out;
  const Ended unbroken = run(
      long_run_words(sharded(1, {"--batch-size", "4", "--save-every", "3u", "--run-dir", "unbroken"})), work.path());
  EXPECT_EQ(unbroken.exit_code, 0) << unbroken.err;
  EXPECT_TRUE(saved(work, "run") == saved(work, "unbroken"));
}

/// As rank `rank` of 2 that somebody else has started on this machine.
Launch joining(const Workplace& work, int rank, const Words& more) {
  Launch launch;
  launch.words = train_words(more);
  launch.directory = work.path();
  launch.variables = {"RANK=" + std::to_string(rank), "WORLD_SIZE=2", "MASTER_ADDR=localhost",
                      "MASTER_PORT=" + std::to_string(free_port())};
  return launch;
}

TEST(DevicesTest, RanksThatWereGivenOtherOptionsAreRefused) {
  const Workplace work;
  write_idx(work);
  Launch one = joining(work, 0, {"--replicas", "2", "--lr", "0.1"}), other = joining(work, 1, {"--replicas", "2"});
  other.variables = one.variables;
  other.variables[0] = "RANK=1";
  Program root(one), second(other);
  const Ended ended = root.wait(), of_second = second.wait();
  EXPECT_EQ(ended.exit_code, kConfig) << ended.err;
  EXPECT_EQ(of_second.exit_code, kConfig) << of_second.err;
  EXPECT_NE((ended.err + of_second.err).find("--lr: rank 1 has auto, rank 0 0.1"), std::string::npos) << ended.err;
}

TEST(DevicesTest, RanksThatSeeOtherDataAreRefused) {
  const Workplace work, elsewhere;
  write_idx(work);
  write_idx(elsewhere, /*train_images=*/60);
  const std::string run_dir = work / "run";
  Launch one = joining(work, 0, {"--replicas", "2", "--run-dir", run_dir}), other = one;
  other.directory = elsewhere.path();
  other.variables[0] = "RANK=1";
  Program root(one), second(other);
  const Ended ended = root.wait(), of_second = second.wait();
  EXPECT_EQ(ended.exit_code, kConfig) << ended.err;
  EXPECT_EQ(of_second.exit_code, kConfig) << of_second.err;
  EXPECT_NE((ended.err + of_second.err).find("the data: rank 1 has "), std::string::npos) << ended.err;
}

/// Ranks 0 and 1 of a long run that somebody else has started; returns once two epochs are done.
class JoinedRun {
 public:
  explicit JoinedRun(const Workplace& work) {
    write_idx(work);
    for (const int rank : {0, 1}) {
      launches_[rank] = joining(work, rank, {});
      launches_[rank].words = long_run_words({"--replicas", "2", "--epochs", "100000"});
      if (rank == 1) launches_[1].variables.back() = launches_[0].variables.back();  // the port
    }
    for (const int rank : {1, 0}) ranks_[rank] = std::make_unique<Program>(launches_[rank]);
    EXPECT_TRUE(rank(0).wait_until([&] { return has_epochs(work, 2); })) << rank(0).err();
  }
  Program& rank(int number) { return *ranks_[number]; }
  const Launch& launch(int rank) const { return launches_[rank]; }
  void expect_stop() {
    for (const auto& rank : ranks_) rank->send(SIGTERM);
    for (const auto& rank : ranks_) {
      const Ended ended = rank->wait();
      EXPECT_EQ(ended.exit_code, kStopped) << ended.err;
    }
  }

 private:
  Launch launches_[2];
  std::unique_ptr<Program> ranks_[2];
};

TEST(DevicesTest, ARankThatIsLostIsNamedWith76WhoeverStartedIt) {
  for (const int lost : {1, 0}) {
    const Workplace work;
    JoinedRun joined(work);
    joined.rank(lost).send(SIGKILL);
    const Ended ended = joined.rank(1 - lost).wait();
    EXPECT_EQ(ended.exit_code, kPeerLost) << ended.err;
    const std::string named =
        "error: rank " + std::to_string(lost) + " (process " + std::to_string(joined.rank(lost).pid()) + ") is gone";
    EXPECT_NE(ended.err.find(named), std::string::npos) << named << '\n' << ended.err;
  }
}

TEST(DevicesTest, ASecondProcessOfARankIsRefusedWhileTheRunGoesOn) {
  const Workplace work;
  JoinedRun joined(work);
  for (const int rank : {0, 1}) {
    const Ended ended = run(joined.launch(rank));
    EXPECT_EQ(ended.exit_code, kConfig) << ended.err;
    EXPECT_NE(ended.err.find("rank " + std::to_string(rank) + " of 2 is here already, as process "), std::string::npos)
        << ended.err;
  }
  joined.expect_stop();
}

TEST(DevicesTest, WhatAJobLeftThatWasKilledIsNotMet) {
  const Workplace work;
  JoinedRun joined(work);
  for (const int rank : {0, 1}) joined.rank(rank).send(SIGKILL);
  for (const int rank : {0, 1}) joined.rank(rank).wait();
  Launch rest[2] = {joined.launch(0), joined.launch(1)};
  for (Launch& launch : rest) launch.words.insert(launch.words.end(), {"--epochs", "1"});
  Program root(rest[0]), second(rest[1]);
  for (Program* const rank : {&root, &second}) {
    const Ended ended = rank->wait();
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
  }
}

TEST(DevicesTest, TwoJobsOnOneMasterPortRunBesideEachOther) {
  const Workplace work;
  JoinedRun joined(work);
  Launch others[2] = {joined.launch(0), joined.launch(1)};
  for (Launch& launch : others) {
    launch.words.insert(launch.words.end(), {"--epochs", "1", "--run-dir", "other"});
    launch.variables.emplace_back("TORCHELASTIC_RUN_ID=other");
  }
  Program root(others[0]), second(others[1]);
  for (Program* const rank : {&root, &second}) {
    const Ended ended = rank->wait();
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
  }
  joined.expect_stop();
}

TEST(DevicesTest, ARankThatDoesNotComeIsNamedWhileItIsWaitedFor) {
  for (const int here : {0, 1}) {
    const Workplace work;
    write_idx(work);
    Program program(joining(work, here, {"--replicas", "2"}));
    const std::string named = "waiting for rank " + std::to_string(1 - here) + " of 2 ...";
    EXPECT_TRUE(program.wait_until([&] { return program.err().find(named) != std::string::npos; }, /*seconds=*/60));
    program.send(SIGTERM);
    const Ended ended = program.wait();
    EXPECT_EQ(ended.exit_code, kStopped) << ended.err;
  }
}

TEST(DevicesTest, OptionsThatRank0ChoseHoldForAll) {
  const Workplace work;
  write_folders(work);
  const Ended ended = run(train_words({"--replicas", "2", "--devices", "2", "--num-workers", "auto",
                                       "--total-batch-size", "8", "--batch-size", "auto"}),
                          work.path());
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  const std::string chosen = content_of_file(work / "run/train.log"),
                    other = content_of_file(work / "run/train.rank-1.log");
  const auto line_of = [](const std::string& text, const std::string& begin) {
    const size_t at = text.find(begin);
    return at == std::string::npos ? begin + " is not there" : text.substr(at, text.find('\n', at) - at);
  };
  for (const char* const begin : {"batch     ", "length    "}) EXPECT_EQ(line_of(chosen, begin), line_of(other, begin));
  EXPECT_NE(chosen.find("chosen    --img-size"), std::string::npos) << chosen;
  EXPECT_EQ(other.find("chosen    --img-size"), std::string::npos) << other;
}

TEST(DevicesTest, WhatAllRanksRefuseIsPrintedOnce) {
  const Workplace work;
  write_idx(work);
  const Ended ended = run(train_words({"--batch-size", "1", "--replicas", "4", "--devices", "2"}), work.path());
  EXPECT_EQ(ended.exit_code, kConfig) << ended.err;
  const size_t first = ended.err.find("batch norm cannot train on batches of one image");
  EXPECT_NE(first, std::string::npos) << ended.err;
  EXPECT_EQ(ended.err.find("batch norm cannot train", first + 1), std::string::npos) << ended.err;
}

TEST(DevicesTest, ReplicasThatDoNotDivideAreRefused) {
  const Workplace work;
  write_idx(work);
  const Ended ended = run(train_words({"--replicas", "3", "--devices", "2"}), work.path());
  EXPECT_EQ(ended.exit_code, kConfig);
  EXPECT_NE(ended.err.find("replicas 3 is not a multiple of devices 2"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("a new run may have --replicas 4"), std::string::npos) << ended.err;
}

TEST(DevicesTest, ThereIsAReplicaForEachProcessAndAResumeKeepsThem) {
  const Workplace work;
  write_idx(work);
  const Words common = {"--batch-size", "4", "--epochs", "2"};
  const auto train = [&](Words words, const std::string& run_dir) {
    words.insert(words.end(), common.begin(), common.end());
    words.insert(words.end(), {"--run-dir", run_dir});
    const Ended ended = run(train_words(words), work.path());
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    return ended.out;
  };
  train({"--replicas", "2"}, "given");
  const std::string out = train({"--devices", "2", "--max-updates", "3"}, "automatic");
  EXPECT_NE(out.find("--replicas 2 was chosen: one for each of 2 processes"), std::string::npos) << out;
  const std::string resumed = train({}, "automatic");
  EXPECT_NE(resumed.find("2 replicas run one after the other; --devices 2 runs all at once"), std::string::npos)
      << resumed;
  EXPECT_TRUE(saved(work, "automatic") == saved(work, "given"));
  Words words = train_words({"--devices", "3", "--epochs", "3"});
  words.insert(words.end(), {"--batch-size", "4", "--run-dir", "automatic"});
  const Ended other = run(words, work.path());
  EXPECT_EQ(other.exit_code, kConfig);
  EXPECT_NE(other.err.find("replicas 2 is not a multiple of devices 3"), std::string::npos) << other.err;
}

TEST(DevicesTest, ADryRunPlansOneOfTheProcessesWithItsShareOfTheMachine) {
  const Workplace work;
  write_idx(work);
  const auto plan_of = [&](int devices) {
    const Words more = {"--batch-size", "4", "--num-workers", "auto", "--dry-run", "-v"};
    const Ended ended = run(train_words(sharded(devices, more)), work.path());
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    return ended.out;
  };
  const std::string alone = plan_of(1), one_of_four = plan_of(4);
  EXPECT_EQ(alone.find("(a share of 4 processes)"), std::string::npos) << alone;
  EXPECT_NE(one_of_four.find("(a share of 4 processes)"), std::string::npos) << one_of_four;
  EXPECT_GT(memory_for(alone), 1.5 * memory_for(one_of_four)) << one_of_four;
  EXPECT_FALSE(std::filesystem::exists(work / "run"));
  const Ended torn = run(train_words({"--replicas", "3", "--devices", "2", "--dry-run"}), work.path());
  EXPECT_EQ(torn.exit_code, kConfig);
  EXPECT_NE(torn.err.find("replicas 3 is not a multiple of devices 2"), std::string::npos) << torn.err;
}

TEST(DevicesTest, NumbersOfGpusAreRefusedOnACpuBeforeAnythingIsStarted) {
  const Workplace work;
  write_idx(work);
  const Ended ended = run(train_words({"--device", "cpu", "--replicas", "2", "--devices", "0,1"}), work.path());
  EXPECT_EQ(ended.exit_code, kConfig);
  EXPECT_EQ(ended.err.find("error: devices 0,1 are numbers of GPUs, but device is cpu\nhint: on a CPU --devices is a "
                           "number of processes: --devices 2 "),
            0u)
      << ended.err;
}

}  // namespace
}  // namespace stoker::cli
