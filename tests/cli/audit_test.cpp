// SPDX-License-Identifier: Apache-2.0
// `train audit`: what is wrong with a data set.
#include <gtest/gtest.h>

#include "tiny_data.h"

namespace stoker::cli {
namespace {

class AuditCommandTest : public ::testing::Test {
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

TEST_F(AuditCommandTest, CountsTheSamplesOfEachSplit) {
  write_folders(work_);
  EXPECT_NE(audit().out.find("split     train: 8 samples"), std::string::npos);
}

TEST_F(AuditCommandTest, NamesCorruptFilesAndImagesOfOneColour) {
  write_folders(work_);
  work_.write("data/train/cat/9.png", "no image");
  const std::string out = audit().out;
  EXPECT_NE(out.find("corrupt   1\n            train: cat/9.png: "), std::string::npos) << out;
  EXPECT_NE(out.find("one colour  16\n"), std::string::npos) << out;
}

TEST_F(AuditCommandTest, DataWithoutAValidationSplitIsAudited) {
  work_.write("data/train/cat/0.png", png_of(8, 8, 10));
  work_.write("data/train/dog/0.png", png_of(8, 8, 20));
  const Ended ended = audit();
  EXPECT_NE(ended.err.find("there is no validation split"), std::string::npos) << ended.err;
}

TEST_F(AuditCommandTest, AFolderOfClassesAloneIsOneSplit) {
  for (const char* const name : {"data/cat/0.png", "data/cat/1.png", "data/dog/2.png"})
    work_.write(name, png_of(8, 8, 10));
  EXPECT_NE(audit().out.find("split     data: 3 samples"), std::string::npos) << audit().out;
}

TEST_F(AuditCommandTest, DevicesInAConfigurationDoNotMatter) {
  write_folders(work_);
  work_.write("gpus.yaml", "device:\n  device: cuda:63\n  devices: 4\n");
  EXPECT_NE(audit({"-c", "gpus.yaml"}).out.find("split     train: 8 samples"), std::string::npos);
}

TEST_F(AuditCommandTest, OptionsThatContradictEachOtherAreRefused) {
  write_folders(work_);
  const Ended ended = run({"audit", "data", "--val-fraction", "0.1", "--val-split", "val"}, work_.path());
  EXPECT_EQ(ended.exit_code, 78) << ended.err;
}

TEST_F(AuditCommandTest, WithoutADataSetIsAMistakeOfTheCommandLine) {
  const Ended ended = run({"audit"}, work_.path());
  EXPECT_EQ(ended.exit_code, 64);
  EXPECT_NE(ended.err.find("no data set is named"), std::string::npos) << ended.err;
}

TEST_F(AuditCommandTest, JsonStandsAloneOnStandardOutput) {
  write_folders(work_);
  const std::string out = audit({"--json"}).out;
  EXPECT_EQ(out.front(), '{');
  EXPECT_NE(out.find("\"duplicates\": []"), std::string::npos) << out;
}

TEST_F(AuditCommandTest, TheNetworksOfARunNameLabelsThatLookWrong) {
  write_idx(work_);
  const Ended trained = run(train_words({"--save-every", "1u", "--keep-last", "9"}), work_.path());
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const Ended asked = run({"audit", "--run", "run", "--suspects", "3", "--output", "page.html"}, work_.path());
  ASSERT_EQ(asked.exit_code, 0) << asked.err;
  EXPECT_NE(asked.out.find("labels of train: about "), std::string::npos) << asked.out;
  EXPECT_NE(asked.out.find("is labelled "), std::string::npos) << asked.out;
  EXPECT_NE(content_of_file(work_ / "page.html").find("Labels of train that look wrong"), std::string::npos);
  const std::string json = run({"audit", "--run", "run", "--suspects", "3", "--json"}, work_.path()).out;
  size_t named = 0;
  for (size_t at = 0; (at = json.find("\"looks_like\"", at)) != std::string::npos; ++at) ++named;
  EXPECT_EQ(named, 6u) << "three of each split\n" << json;
}

/// The output of a run of two epochs on data/.
std::string output_of_training(const Workplace& work, const Words& more = {}) {
  Words words = train_words({"--epochs", "2"});
  words.insert(words.end(), more.begin(), more.end());
  const Ended ended = run(words, work.path());
  EXPECT_EQ(ended.exit_code, 0) << story_of(words, ended);
  return ended.out + ended.err;
}

TEST(SplitOverlapTest, TheFirstEpochWarnsOfImagesThatAreInBothSplits) {
  const Workplace work;
  write_folders(work);  // the same in both
  const std::string output = output_of_training(work),
                    warning = "8 of the 8 validation images are training images, too: ";
  const size_t first = output.find(warning);
  EXPECT_NE(first, std::string::npos) << output;
  EXPECT_EQ(output.find(warning, first + 1), std::string::npos) << "once";
}

TEST(SplitOverlapTest, SeveralProcessesSeeTogetherWhatOneWouldSee) {
  const Workplace work;
  write_idx(work);
  work.write("data/t10k-images-idx3-ubyte", idx_images(20));  // the ten images of the training split
  const std::string warning = "20 of the 20 validation images are training images, too: ";
  const std::string output = output_of_training(work, {"--replicas", "2", "--devices", "2", "--val-batch-size", "4"});
  const size_t first = output.find(warning);
  EXPECT_NE(first, std::string::npos) << output;
  EXPECT_EQ(output.find("are training images, too", first + warning.size()), std::string::npos) << "once";
}

TEST(SplitOverlapTest, DifferentImagesGiveNoWarning) {
  const Workplace work;
  write_folders(work);
  for (int i = 0; i < 8; ++i) {
    const std::string kind = i < 4 ? "cat/" : "dog/";
    work.write("data/val/" + kind + std::to_string(i % 4) + ".png", png_of(8, 8, static_cast<uint8_t>(30 * i + 7)));
  }
  EXPECT_EQ(output_of_training(work).find("are training images, too"), std::string::npos);
}

}  // namespace
}  // namespace stoker::cli
