// SPDX-License-Identifier: Apache-2.0
#include "observe/observers/tensorboard.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/system/file.h"
#include "tests/temporary_directory.h"

namespace stoker::observe {
namespace {

class TensorBoardTest : public ::testing::Test {
 protected:
  std::vector<std::string> files() const {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "tensorboard"))
      paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    return paths;
  }
  static std::string content(const std::string& path) { return core::read_file(path, 1 << 20); }

  const stoker::fixtures::TemporaryDirectory folder_;
};

engine::StartEvent started_at_update(int64_t updates) {
  engine::StartEvent event;
  event.start_updates = updates;
  return event;
}

TEST_F(TensorBoardTest, AReportIsOneRecordOfScalars) {
  TensorBoardFile file(folder_.path());
  file.on_start(started_at_update(0));
  const size_t before = content(files().at(0)).size();
  engine::ReportEvent report;
  report.at.updates = 300;
  report.train_loss = 0.25;
  file.on_report(report);
  const std::string record = content(files().at(0)).substr(before);
  const auto length = static_cast<size_t>(static_cast<unsigned char>(record.at(0))) +
                      256 * static_cast<size_t>(static_cast<unsigned char>(record.at(1)));
  EXPECT_EQ(record.size(), length + 16);
  for (const std::string tag : {"train/loss", "train/lr", "speed/images_per_second", "speed/data_wait_share"}) {
    EXPECT_NE(record.find(tag), std::string::npos) << tag;
  }
  EXPECT_NE(record.find(std::string("\x15\x00\x00\x80\x3e", 5)), std::string::npos) << "0.25 as a float";
  EXPECT_EQ(record.find("gradient_norm"), std::string::npos) << "what was not measured is left out";
}

TEST_F(TensorBoardTest, RanksHaveTagsWhereThereAreSeveral) {
  TensorBoardFile file(folder_.path());
  file.on_start(started_at_update(0));
  file.on_report({});
  EXPECT_EQ(content(files().at(0)).find("exchange_share"), std::string::npos);
  engine::ReportEvent report;
  report.ranks = {{"a", 0.1, 0, 0.04, 0.06, 0.01}, {"b", 0.1, 0, 0.01, 0.09, 0.01}};
  file.on_report(report);
  for (const std::string tag : {"speed/exchange_share", "speed/slowest_rank", "speed/slowest_rank_excess"}) {
    EXPECT_NE(content(files().at(0)).find(tag), std::string::npos) << tag;
  }
}

TEST_F(TensorBoardTest, AnEpochThatWasNotEvaluatedHasNoEvaluation) {
  TensorBoardFile file(folder_.path());
  file.on_start(started_at_update(0));
  file.on_epoch({});
  EXPECT_EQ(content(files().at(0)).find("eval/"), std::string::npos);
  engine::EpochEvent event;
  event.has_eval = true;
  file.on_epoch(event);
  EXPECT_NE(content(files().at(0)).find("eval/loss"), std::string::npos);
}

TEST_F(TensorBoardTest, AResumeBeginsAFileBehindTheOthersThatDropsRepeatedSteps) {
  TensorBoardFile(folder_.path()).on_start(started_at_update(0));
  const std::string first = files().at(0);
  const std::string early = folder_ / "tensorboard/events.out.tfevents.4000000000.host.1";  // a clock that was wrong
  std::filesystem::rename(first, early);
  TensorBoardFile(folder_.path()).on_start(started_at_update(40));
  ASSERT_EQ(files().size(), 2u);
  EXPECT_EQ(files().at(0), early);
  EXPECT_NE(files().at(1).find("tfevents.4000000001."), std::string::npos) << files().at(1);
  const std::string restart("\x10\x29\x3a\x02\x08\x01", 6);  // step 41, session log START
  EXPECT_NE(content(files().at(1)).find(restart), std::string::npos);
  EXPECT_EQ(content(early).find("\x3a\x02\x08\x01"), std::string::npos) << "a fresh run drops nothing";
}

TEST_F(TensorBoardTest, ALinkedFolderIsRefused) {
  const stoker::fixtures::TemporaryDirectory elsewhere;
  std::filesystem::create_directory_symlink(elsewhere.path(), folder_ / "tensorboard");
  TensorBoardFile file(folder_.path());
  EXPECT_THROW(file.on_start(started_at_update(0)), core::Error);
  EXPECT_TRUE(std::filesystem::is_empty(elsewhere.path()));
}

}  // namespace
}  // namespace stoker::observe
