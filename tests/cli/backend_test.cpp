// SPDX-License-Identifier: Apache-2.0
// A library that computes wrongly is found before the first update, named, and worked around or refused.
#include <gtest/gtest.h>

#include <filesystem>

#include "bad_input.h"
#include "exit_codes.h"
#include "program.h"

namespace stoker::cli {
namespace {

bool has(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

class BackendTest : public ::testing::Test {
 protected:
  BackendTest() { write_idx(work_); }

  /// Trains in float32 for one epoch; `fault` as tests/faulty_library has it, "" for none. `where` and `seed`:
  /// STOKER_FAULT_IN and STOKER_FAULT_SEED.
  Ended trained(const std::string& fault, const Words& more = {}, const std::string& where = "convolution",
                const std::string& seed = "0") const {
    Launch launch;
    launch.words = train_words({"--epochs", "1", "--no-amp"});
    launch.words.insert(launch.words.end(), more.begin(), more.end());
    launch.directory = work_.path();
    launch.variables = {"XDG_CACHE_HOME=" + work_.path() + "/cache"};
    if (!fault.empty()) {
      launch.variables.push_back(std::string("LD_PRELOAD=") + STOKER_FAULTY);
      launch.variables.push_back("STOKER_FAULT=" + fault);
      launch.variables.push_back("STOKER_FAULT_IN=" + where);
      launch.variables.push_back("STOKER_FAULT_SEED=" + seed);
    }
    return run(launch);
  }

  Workplace work_;
};

TEST_F(BackendTest, TheSecondStartReadsWhatTheFirstHasProven) {
  const Ended first = trained("");
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_TRUE(has(first.out, "operations agree with double-precision loops, checked in ")) << first.out;
  std::filesystem::remove_all(work_ / "run");
  const Ended second = trained("");
  EXPECT_TRUE(has(second.out, "operations agree with double-precision loops, checked at an earlier start"))
      << second.out;
  EXPECT_TRUE(has(content_of_file(work_ / "run/metrics.jsonl"), "\"backend\":\"")) << second.err;
}

TEST_F(BackendTest, AWrongConvolutionIsNamedAndComputedInAnotherWay) {
  const Ended right = trained("");
  const std::string expected = content_of_file(work_ / "run/summary.csv");
  std::filesystem::remove_all(work_ / "run");
  const Ended wrong = trained("channel");
  EXPECT_EQ(wrong.exit_code, 0) << wrong.err;
  EXPECT_TRUE(has(wrong.err, "warning: backend: oneDNN ")) << wrong.err;
  EXPECT_TRUE(has(wrong.err, " computes wrongly on this machine: ")) << wrong.err;
  EXPECT_TRUE(has(wrong.err, "convolution, input ")) << wrong.err;
  EXPECT_TRUE(has(wrong.err, " elements wrong, off by ")) << wrong.err;
  EXPECT_TRUE(has(wrong.err, "; computed ")) << wrong.err;
  // The losses of both, to four digits: other kernels round otherwise.
  const auto loss = [](const std::string& csv) { return std::stod(csv.substr(csv.find("\n1,") + 3)); };
  EXPECT_NEAR(loss(content_of_file(work_ / "run/summary.csv")), loss(expected), 1e-3) << right.err;
}

TEST_F(BackendTest, ALibraryThatCrashesTakesNothingWithIt) {
  const Ended ended = trained("SIGFPE", {"--batch-size", "8"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_TRUE(has(ended.err, ": SIGFPE")) << ended.err;
}

// The planted crash is in the product of a convolution of one image without oneDNN, which no batch of this run needs.
TEST_F(BackendTest, NothingIsComputedBeforeTheProof) {
  const Ended ended = trained("SIGFPE", {}, "product", /*seed=*/"11");
  // Where a processor's own kernels need that product after all, the run is refused.
  EXPECT_TRUE(ended.exit_code == 0 || ended.exit_code == 83) << ended.exit_code << ended.err;
}

TEST_F(BackendTest, ARunOfOtherOptionsIsRefusedBeforeTheProof) {
  ASSERT_EQ(trained("").exit_code, 0);
  std::filesystem::remove_all(work_ / "cache");
  const Ended other = trained("SIGFPE", {"--batch-size", "8", "--lr", "0.5"});
  EXPECT_EQ(other.exit_code, 78) << other.err;
  EXPECT_TRUE(has(other.err, "--lr: the checkpoint has ")) << other.err;
  EXPECT_FALSE(has(other.err, "computes wrongly")) << other.err;
}

TEST_F(BackendTest, OffIsRecordedAndTrainsOnWhatTheLibraryGives) {
  const Ended ended = trained("channel", {"--prove-backend", "off"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_TRUE(has(ended.out, "not proven: --prove-backend off")) << ended.out;
  EXPECT_TRUE(has(content_of_file(work_ / "run/metrics.jsonl"), "not proven: --prove-backend off"));
}

}  // namespace
}  // namespace stoker::cli
