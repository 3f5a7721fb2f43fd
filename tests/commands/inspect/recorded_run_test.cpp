// SPDX-License-Identifier: Apache-2.0
#include "commands/inspect/recorded_run.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "core/error.h"
#include "core/format.h"
#include "tests/temporary_directory.h"

namespace stoker::train {
namespace {

std::string digest_line(int64_t updates, const std::string& more = "") {
  return core::format(R"({{"event":"digest","epoch":1,"updates":{0},"weights":"w{0}","images":"i{0}"{1}}})", updates,
                      more) +
         "\n";
}

std::string nested(int levels) { return std::string(levels, '[') + std::string(levels, ']'); }

class RecordedRunTest : public testing::Test {
 protected:
  RecordedRunTest() { run_.write("config.yaml", ""); }

  RecordedRun read() const { return read_recorded_run(run_.path()); }
  RecordedRun read(const std::string& metrics, const std::string& status = "{}") const {
    run_.write("metrics.jsonl", metrics);
    run_.write("status.json", status);
    return read();
  }
  core::Error failure() const {
    try {
      read();
    } catch (const core::Error& error) {
      return error;
    }
    return {core::ErrorKind::bug, "it was read"};
  }

  const fixtures::TemporaryDirectory run_;
};

TEST_F(RecordedRunTest, HasDigestsReportsAndFailure) {
  const RecordedRun run = read("{\"event\":\"start\",\"updates\":0}\n" + digest_line(1) +
                                   "{\"event\":\"report\",\"updates\":4,\"train_loss\":0.5,\"skipped_updates\":2}\n" +
                                   "{\"event\":\"report\",\"updates\":8,\"train_loss\":null}\n",
                               R"({"state":"failed"})");
  ASSERT_EQ(run.digests.size(), 1u);
  EXPECT_EQ(run.digests.at(1).epoch, 1);
  EXPECT_EQ(run.digests.at(1).weights, "w1");
  EXPECT_EQ(run.digests.at(1).images, "i1");
  ASSERT_EQ(run.reports.size(), 2u);
  EXPECT_EQ(run.reports[0].loss, 0.5);
  EXPECT_EQ(run.reports[0].skipped, 2);
  EXPECT_GT(run.reports[1].loss, 1e300);
  EXPECT_EQ(run.updates, 8);
  EXPECT_TRUE(run.failed);
}

TEST_F(RecordedRunTest, AResumeForgetsWhatCameAfterItsCheckpoint) {
  const RecordedRun run =
      read(digest_line(1) + digest_line(2) + "{\"event\":\"resume\",\"updates\":1}\n" + digest_line(3));
  ASSERT_EQ(run.digests.size(), 2u);
  EXPECT_EQ(run.digests.count(2), 0u);
  EXPECT_EQ(run.updates, 3);
}

TEST_F(RecordedRunTest, ARunWithoutRecordsHasNone) {
  const RecordedRun run = read();
  EXPECT_TRUE(run.digests.empty());
  EXPECT_EQ(run.updates, 0);
  EXPECT_FALSE(run.failed);
}

TEST_F(RecordedRunTest, DamagedLinesAreLeftOut) {
  const std::string half = digest_line(4).substr(0, 60);
  const RecordedRun run = read(digest_line(1) + half + "\n" + digest_line(5, ",\"updates\":6") +
                               digest_line(7, ",\"deep\":" + nested(100'000)) + digest_line(2) + half);
  ASSERT_EQ(run.digests.size(), 2u) << "a key that is there twice and what is nested too deep are damage";
  EXPECT_EQ(run.digests.count(1), 1u);
  EXPECT_EQ(run.digests.count(2), 1u);
  EXPECT_EQ(run.updates, 2);
}

TEST_F(RecordedRunTest, ADigestWithoutItsFieldsIsRefused) {
  run_.write("metrics.jsonl", "{\"event\":\"digest\",\"updates\":1}\n");
  EXPECT_EQ(failure().kind(), core::ErrorKind::data);
}

TEST_F(RecordedRunTest, ADamagedStatusIsIgnored) {
  for (const std::string& status :
       {std::string("{\"state\":\"fai"), std::string(R"({"state":"training","state":"failed"})"),
        std::string(R"({"state":"failed","state":"failed"})"), R"({"state":"failed","deep":)" + nested(20) + "}"}) {
    EXPECT_FALSE(read("", status).failed) << status;
  }
}

TEST_F(RecordedRunTest, ALineWithoutEndIsRefused) {
  run_.write("metrics.jsonl", digest_line(1) + std::string(17 << 20, ' '));
  const core::Error error = failure();
  EXPECT_EQ(error.kind(), core::ErrorKind::data);
  EXPECT_NE(std::string(error.what()).find("metrics.jsonl:2: line longer than 16777216 bytes"), std::string::npos)
      << error.what();
}

TEST_F(RecordedRunTest, ARecordThatIsNoFileIsRefused) {
  ASSERT_EQ(::mkfifo((run_ / "metrics.jsonl").c_str(), 0600), 0);
  EXPECT_EQ(failure().kind(), core::ErrorKind::no_input);
}

}  // namespace
}  // namespace stoker::train
