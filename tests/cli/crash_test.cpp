// SPDX-License-Identifier: Apache-2.0
// A fault in a library, or a signal of one that is sent, ends a run with a last line, a code, a hint and a status file
// with the reason; the same command continues.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <map>
#include <ostream>
#include <regex>

#include "bad_input.h"
#include "long_run.h"

namespace stoker::cli {
namespace {

constexpr const char* kLibrary = "library=libfaulting.so";

struct Fault {
  std::string what;    ///< as faulting.cpp has it
  std::string signal;  ///< that it leads to
  int exit_code;
};
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.what; }
const Fault kFaults[] = {
    {"FPE", "FPE", 136},       {"ILL", "ILL", 132},   {"BUS", "BUS", 135},
    {"SEGV", "SEGV", 139},     {"ABRT", "ABRT", 134}, {"STACK", "SEGV", 139},
#if defined(__x86_64__)
    {"GENERATED", "ILL", 132},
#endif
};

/// Saves after each update; crashes after the first save.
Launch crashing(const Workplace& work, const std::string& what, const Words& more = {}) {
  write_idx(work);
  Launch launch;
  launch.words = train_words({"--epochs", "4", "--save-every", "1u"});
  launch.words.insert(launch.words.end(), more.begin(), more.end());
  launch.directory = work.path();
  launch.variables = {std::string("LD_PRELOAD=") + STOKER_FAULTING, "STOKER_FAULT=" + what,
                      "STOKER_FAULT_AFTER=run/checkpoints/last/manifest.json"};
  return launch;
}

bool holds(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

void expect_status_of_crash(const Workplace& work, const std::string& reason, int exit_code) {
  const std::string status = content_of_file(work / "run/status.json");
  EXPECT_TRUE(holds(status, "\"state\": \"failed\"")) << status;
  EXPECT_TRUE(holds(status, "\"reason\": \"" + reason + "\"")) << status;
  EXPECT_TRUE(holds(status, "\"exit_code\": " + std::to_string(exit_code) + "\n}\n")) << status;
  const std::regex time("\"time\": \"20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]Z\"");
  EXPECT_TRUE(std::regex_search(status, time)) << status;
  const Ended listed = run({"runs", "."}, work.path());
  EXPECT_TRUE(holds(listed.out, "failed (" + reason + ")")) << listed.out << listed.err;
}

void expect_same_command_goes_on(const Launch& launch) {
  Launch again = launch;
  again.variables.clear();
  const Ended ended = run(again);
  EXPECT_EQ(ended.exit_code, 0) << story_of(again.words, ended);
  EXPECT_TRUE(holds(ended.out, ", resumes run/checkpoints/step-000000")) << ended.out;
}

class CrashTest : public ::testing::TestWithParam<Fault> {};

TEST_P(CrashTest, EndsARunWithItsLibraryInTheLastLineAndTheSameCommandGoesOn) {
  const Fault& fault = GetParam();
  const Workplace work;
  Launch launch = crashing(work, fault.what);
  launch.variables.push_back("STOKER_FAULT_THREAD=train");
  const Ended ended = run(launch);
  EXPECT_EQ(ended.exit_code, fault.exit_code) << story_of(launch.words, ended);
  EXPECT_EQ(last_line(ended.err),
            "train: exit=" + std::to_string(fault.exit_code) + " reason=crash:" + fault.signal + " " + kLibrary)
      << ended.err;
  EXPECT_TRUE(holds(ended.err, "error: crashed with SIG" + fault.signal + " (")) << ended.err;
  EXPECT_TRUE(
      holds(ended.err, ") in libfaulting.so\nhint: checkpoints are complete: run the same command to continue. "))
      << ended.err;
  EXPECT_TRUE(holds(ended.err, "--prove-backend full")) << ended.err;
  const std::string log = content_of_file(work / "run/train.log");
  EXPECT_TRUE(holds(log, "Z error crashed with SIG" + fault.signal + " (")) << log;
  expect_status_of_crash(work, "crash:" + fault.signal, fault.exit_code);
  expect_nothing_half_written(work);
  expect_same_command_goes_on(launch);
}

std::string name_of_fault(const ::testing::TestParamInfo<Fault>& fault) { return fault.param.what; }
INSTANTIATE_TEST_SUITE_P(AFault, CrashTest, ::testing::ValuesIn(kFaults), name_of_fault);

/// They leave signals to the main thread, but not those of faults.
TEST(CrashedRunTest, AFaultInAThreadThatHoldsSignalsIsNoOther) {
  for (const std::string thread : {"loader-0", "resources"}) {
    const Workplace work;
    Launch launch = crashing(work, "STACK");
    launch.words.insert(launch.words.end(), {"--epochs", "1000000"});
    launch.variables.push_back("STOKER_FAULT_THREAD=" + thread);
    const Ended ended = run(launch);
    EXPECT_EQ(ended.exit_code, 139) << thread << story_of(launch.words, ended);
    EXPECT_EQ(last_line(ended.err), std::string("train: exit=139 reason=crash:SEGV ") + kLibrary) << ended.err;
  }
}

TEST(CrashedRunTest, HandlersOfUcxAreTurnedOffUnlessTheUserAsksForThem) {
  for (const bool asked_for : {false, true}) {
    const Workplace work;
    Launch launch = crashing(work, "FPE");
    launch.variables[0] += std::string(":") + STOKER_FAKE_UCX;
    if (asked_for) launch.variables.push_back("UCX_HANDLE_ERRORS=bt");
    const Ended ended = run(launch);
    EXPECT_EQ(ended.exit_code, asked_for ? 1 : 136) << story_of(launch.words, ended);
    EXPECT_EQ(last_line(ended.err), asked_for ? std::string("==== backtrace of UCX ====")
                                              : std::string("train: exit=136 reason=crash:FPE ") + kLibrary)
        << ended.err;
  }
}

TEST(CrashedRunTest, ASignalOfAFaultThatIsSentEndsARunWithItsCode) {
  for (const auto& [number, name] : std::map<int, std::string>{{SIGSEGV, "SEGV"}, {SIGABRT, "ABRT"}}) {
    const Workplace work;
    Program program(long_run(work, {"--epochs", "100000"}));
    wait_for_two_epochs(program, work);
    program.send(number);
    const Ended ended = program.wait();
    const int exit_code = 128 + number;
    EXPECT_EQ(ended.exit_code, exit_code) << ended.err;
    EXPECT_EQ(last_line(ended.err),
              "train: exit=" + std::to_string(exit_code) + " reason=crash:" + name + " library=none")
        << ended.err;
    EXPECT_TRUE(holds(ended.err, "error: SIG" + name + " was sent by process " + std::to_string(::getpid()) + "\n"))
        << ended.err;
    expect_status_of_crash(work, "crash:" + name, exit_code);
  }
}

TEST(CrashedRunTest, ACrashOfARankIsTheEndOfAllAndTheLastLineNamesIt) {
  for (const std::string rank : {"0", "1"}) {
    const Workplace work;
    Launch launch = crashing(work, "FPE", {"--replicas", "2", "--devices", "2", "--batch-size", "8"});
    launch.variables.push_back("STOKER_FAULT_RANK=" + rank);
    Program program(launch);
    std::vector<pid_t> ranks;
    program.wait_until([&] { return (ranks = children_of(program.pid())).size() == 2; });
    const Ended ended = program.wait();
    EXPECT_EQ(ended.exit_code, 136) << story_of(launch.words, ended);
    EXPECT_EQ(last_line(ended.err), "train: exit=136 reason=crash:FPE rank=" + rank) << ended.err;
    EXPECT_TRUE(holds(ended.err, std::string("train: exit=136 reason=crash:FPE ") + kLibrary + "\n"))
        << "the rank's own\n"
        << ended.err;
    EXPECT_TRUE(holds(ended.err, rank == "0" ? "error: crashed with SIGFPE" : "error: rank 1: crashed with SIGFPE"))
        << ended.err;
    ASSERT_EQ(ranks.size(), 2u);
    for (const pid_t one : ranks) EXPECT_FALSE(std::filesystem::exists("/proc/" + std::to_string(one))) << one;
    EXPECT_TRUE(holds(content_of_file(work / "run/status.json"), "\"state\": \"failed\""));
    expect_same_command_goes_on(launch);
  }
}

TEST(CrashedRunTest, RanksThatOthersHaveStartedReportEachHowTheyEnd) {
  const Workplace work;
  Launch root = crashing(work, "FPE", {"--replicas", "2", "--batch-size", "8"});
  for (const std::string variable : {"STOKER_FAULT_RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=localhost"}) {
    root.variables.push_back(variable);
  }
  root.variables.push_back("MASTER_PORT=" + std::to_string(free_port()));
  Launch other = root;
  root.variables.push_back("RANK=0");
  other.variables.push_back("RANK=1");
  Program first(root), second(other);
  const Ended ended = first.wait(), crashed = second.wait();
  EXPECT_EQ(last_line(ended.err), "train: exit=76 reason=error") << ended.err;
  EXPECT_EQ(last_line(crashed.err), std::string("train: exit=136 reason=crash:FPE ") + kLibrary) << crashed.err;
}

TEST(CrashedRunTest, ACrashOfARankIsRestartedAsALostOneIs) {
  const Workplace work;
  Launch launch = crashing(work, "SEGV", {"--replicas", "2", "--devices", "2", "--batch-size", "8", "--restarts", "1"});
  launch.variables.push_back("STOKER_FAULT_RANK=1");
  const Ended ended = run(launch);
  EXPECT_EQ(ended.exit_code, 139) << story_of(launch.words, ended);
  EXPECT_TRUE(holds(ended.err, "starting all ranks again from the newest checkpoint (1 of 1 restarts)")) << ended.err;
}

TEST(CrashedRunTest, TheCommandAtTheEndLearnsOfIt) {
  const Workplace work;
  const std::string print =
      "echo \"$STOKER_EXIT_CODE|$STOKER_REASON|$STOKER_RUN_DIR|$STOKER_METRIC|$STOKER_UPDATES\" > seen";
  Launch launch = crashing(work, "ABRT", {"--on-end", print});
  launch.variables.push_back("STOKER_METRIC=of another run");
  const Ended ended = run(launch);
  EXPECT_EQ(ended.exit_code, 134) << ended.err;
  EXPECT_EQ(content_of_file(work / "seen"), "134|crash:ABRT|run||\n") << ended.err;
}

}  // namespace
}  // namespace stoker::cli
