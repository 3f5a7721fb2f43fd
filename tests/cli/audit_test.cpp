// SPDX-License-Identifier: Apache-2.0
// `train audit`: what is wrong with a data set.
#include <gtest/gtest.h>

#include "tiny_data.h"

namespace stoker::cli {
namespace {

class AuditVerbTest : public ::testing::Test {
 protected:
  Ended audit(Words more = {}) {
    Words words = {"audit", "data"};
    words.insert(words.end(), more.begin(), more.end());
    const Ended ended = run(words, work_.path());
    EXPECT_EQ(ended.exit_code, 0) << story_of(words, ended);
    EXPECT_EQ(last_line(ended.err), "train: exit=0 reason=audited");
    return ended;
  }
  const Workplace work_;
};

TEST_F(AuditVerbTest, CountsTheSamplesOfEachSplit) {
  write_folders(work_);
  EXPECT_NE(audit().out.find("split     train: 8 samples"), std::string::npos);
}

TEST_F(AuditVerbTest, NamesCorruptFilesAndImagesOfOneColour) {
  write_folders(work_);
  work_.write("data/train/cat/9.png", "no image");
  const std::string out = audit().out;
  EXPECT_NE(out.find("corrupt   1\n            train: cat/9.png: "), std::string::npos) << out;
  EXPECT_NE(out.find("one colour  16\n"), std::string::npos) << out;
}

TEST_F(AuditVerbTest, DataWithoutAValidationSplitIsAudited) {
  work_.write("data/train/cat/0.png", png_of(8, 8, 10));
  work_.write("data/train/dog/0.png", png_of(8, 8, 20));
  const Ended ended = audit();
  EXPECT_NE(ended.out.find("there is no validation split"), std::string::npos) << ended.out;
}

TEST_F(AuditVerbTest, WithoutADataSetIsAMistakeOfTheCommandLine) {
  const Ended ended = run({"audit"}, work_.path());
  EXPECT_EQ(ended.exit_code, 64);
  EXPECT_NE(ended.err.find("no data set is named"), std::string::npos) << ended.err;
}

TEST_F(AuditVerbTest, JsonStandsAloneOnStandardOutput) {
  write_folders(work_);
  const std::string out = audit({"--json"}).out;
  EXPECT_EQ(out.front(), '{');
  EXPECT_NE(out.find("\"duplicates\": []"), std::string::npos) << out;
}

}  // namespace
}  // namespace stoker::cli
