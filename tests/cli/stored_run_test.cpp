// SPDX-License-Identifier: Apache-2.0
// A run that an older program stored (tests/stored_run) is evaluated and continues with this one:
// docs/reference/compatibility.md.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tiny_data.h"

namespace stoker::cli {
namespace {

/// Processors and releases of LibTorch round otherwise; an option that is lost changes much more.
constexpr double kRounding = 2e-3;

class StoredRunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* const folder : {"data", "run"}) {
      copy_folder(STOKER_SOURCE_DIR "/tests/stored_run/" + std::string(folder), work_ / folder);
    }
  }

  Ended succeed(const Words& words) {
    const Ended ended = run(words, work_.path());
    EXPECT_EQ(ended.exit_code, 0) << story_of(words, ended);
    return ended;
  }
  std::vector<std::string> summary() const { return lines_of(content_of_file(work_ / "run/summary.csv")); }

  const Workplace work_;
};

double cell(const std::string& row, int column) {
  size_t begin = 0;
  while (column-- > 0) begin = row.find(',', begin) + 1;
  return std::atof(row.c_str() + begin);
}

/// In what `train eval --json` wrote.
double metric(const std::string& json, const std::string& name) {
  const size_t at = json.find("\"value\": ", json.find("\"name\": \"" + name + "\""));
  return at == std::string::npos ? -1 : std::atof(json.c_str() + at + 9);
}

TEST_F(StoredRunTest, IsEvaluatedWithTheMetricsThatItStored) {
  const std::string stored = summary().back();
  const Ended ended = succeed({"eval", "run", "--json"});
  EXPECT_NEAR(metric(ended.out, "loss"), cell(stored, 2), kRounding) << ended.out;
  EXPECT_NEAR(metric(ended.out, "top1"), cell(stored, 3), 1e-4) << ended.out;
}

TEST_F(StoredRunTest, TrainsOnAsItsOwnProgramDid) {
  const std::vector<std::string> stored = summary();
  const Ended ended = succeed({"--resume", "run/checkpoints/step-00000012", "--epochs", "3"});
  const std::vector<std::string> rows = summary();
  ASSERT_EQ(rows.size(), 4u) << ended.out << ended.err;
  for (size_t i = 1; i < stored.size(); ++i) {  // epochs that it had are not trained again
    EXPECT_EQ(rows[i].rfind(stored[i], 0), 0u) << rows[i] << ": younger metrics have columns behind";
  }
  EXPECT_NEAR(cell(rows[3], 1), 0.909882, kRounding) << "train_loss";
  EXPECT_NEAR(cell(rows[3], 2), 1.275675, kRounding) << "eval_loss";
  EXPECT_EQ(cell(rows[3], 6), 18) << "updates";
  EXPECT_EQ(succeed({"eval", "run/checkpoints/last"}).exit_code, 0);
}

}  // namespace
}  // namespace stoker::cli
