// SPDX-License-Identifier: Apache-2.0
#include "data/storage/staged_file.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "core/log.h"
#include "core/system/file.h"
#include "core/system/stop_signal.h"
#include "made_data.h"

namespace stoker::data {
namespace {

namespace fs = std::filesystem;

class StagedFileTest : public ::testing::Test {
 protected:
  StagedFileTest() { core::set_console_level(core::LogLevel::error); }
  ~StagedFileTest() override {
    core::request_stop(0);
    core::set_console_level(core::LogLevel::info);
  }

  std::shared_ptr<const StagedFile> stage() { return StagedFile::stage(original_, fast_, notes_); }
  std::vector<std::string> copies() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(fast_)) names.push_back(entry.path().filename().string());
    return names;
  }

  TempFolder folder_;
  const std::string original_ = folder_.write("data/train.h5", pattern_pixels(640, 480, 3));
  const std::string fast_ = folder_.make_folder("fast");
  std::vector<std::string> notes_;
};

TEST_F(StagedFileTest, TheCopyIsWholeAndGoesWithItsUser) {
  {
    const auto staged = stage();
    EXPECT_EQ(fs::path(staged->path()).parent_path(), fast_);
    EXPECT_EQ(core::read_file(staged->path(), 1 << 24), core::read_file(original_, 1 << 24));
    EXPECT_EQ(fs::last_write_time(staged->path()), fs::last_write_time(original_));
    EXPECT_EQ(copies().size(), 1u);
  }
  EXPECT_TRUE(copies().empty());
  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_NE(notes_[0].find("is read from a copy in " + fast_), std::string::npos) << notes_[0];
}

TEST_F(StagedFileTest, TwoUsersShareACopyAndTheLastOneRemovesIt) {
  auto first = stage();
  auto second = stage();
  EXPECT_EQ(first->path(), second->path());
  first.reset();
  EXPECT_EQ(copies().size(), 1u);
  second.reset();
  EXPECT_TRUE(copies().empty());
}

TEST_F(StagedFileTest, WhatAKilledRunLeftIsTakenOverWhenItIsWhole) {
  std::string left;
  {
    const auto staged = stage();
    left = staged->path();
    fs::copy_file(left, folder_ / "kept");
  }
  fs::rename(folder_ / "kept", left);
  fs::last_write_time(left, fs::last_write_time(original_));
  const auto inode_of = [](const std::string& path) { return fs::hard_link_count(path); };
  fs::create_hard_link(left, folder_ / "witness");
  const auto staged = stage();
  EXPECT_EQ(inode_of(staged->path()), 2u) << "the same file, not a new copy";
  EXPECT_NE(notes_.back().find("was there already"), std::string::npos) << notes_.back();
}

TEST_F(StagedFileTest, UnfinishedCopiesAndThoseOfAnOlderFileAreRemoved) {
  std::string name;
  { name = stage()->path(); }
  const std::string part = name + ".4711.part";
  std::ofstream(part) << "half";
  std::ofstream(name) << "of the wrong size";
  {
    const auto staged = stage();
    EXPECT_EQ(copies().size(), 1u);
    EXPECT_EQ(fs::file_size(staged->path()), fs::file_size(original_));
  }
  fs::copy_file(original_, name);
  std::ofstream(original_, std::ios::app) << "more";
  const auto staged = stage();
  EXPECT_NE(staged->path(), name);
  EXPECT_EQ(copies().size(), 1u) << "the copy of the file as it was is gone";
}

TEST_F(StagedFileTest, AStopLeavesNothingBehind) {
  core::request_stop(SIGTERM);
  EXPECT_THROW(stage(), core::StopRequested);
  EXPECT_TRUE(copies().empty());
}

TEST_F(StagedFileTest, AMissingFolderIsNamed) {
  fs::remove(fast_);
  const core::Error error = error_of([&] { stage(); });
  EXPECT_EQ(error.kind(), core::ErrorKind::no_input);
  EXPECT_EQ(error.what(), "--stage-dir " + fast_ + " is no folder");
}

TEST_F(StagedFileTest, SeveralFilesAreCopiedOnceAndSaidInOneLine) {
  const std::string second = folder_.write("data/val.h5", pattern_pixels(20, 10, 3));
  const auto before = stage();
  notes_.clear();
  auto copies_of_both = StagedFile::stage_all({original_, second}, fast_, notes_);
  ASSERT_EQ(copies_of_both.size(), 2u);
  EXPECT_EQ(copies_of_both[0]->path(), before->path());
  EXPECT_EQ(core::read_file(copies_of_both[1]->path(), 1 << 24), core::read_file(second, 1 << 24));
  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_NE(notes_[0].find(original_ + " and 1 others are read from copies in " + fast_ +
                           " (922.2 kB, of which 921.6 kB were there already)"),
            std::string::npos)
      << notes_[0];
  copies_of_both.clear();
  EXPECT_EQ(copies().size(), 1u) << "the one that is in use";
}

TEST_F(StagedFileTest, RoomForAllIsAskedForBeforeTheFirstIsCopied) {
  const std::string large = folder_ / "large.h5";
  std::ofstream(large) << "x";
  fs::resize_file(large, core::free_bytes(fast_) + (uint64_t{1} << 30));  // a hole: takes no room here
  const core::Error error = error_of([&] { StagedFile::stage_all({original_, large}, fast_, notes_); });
  EXPECT_EQ(error.kind(), core::ErrorKind::cannot_create);
  EXPECT_NE(std::string(error.what()).find("what has no copy there yet of " + original_ + " and 1 others has "),
            std::string::npos)
      << error.what();
}

TEST_F(StagedFileTest, AFileThatDoesNotFitIsRefusedBeforeItIsCopied) {
  const std::string large = folder_ / "large.h5";
  std::ofstream(large) << "x";
  fs::resize_file(large, core::free_bytes(fast_) + (uint64_t{1} << 30));  // a hole: takes no room here
  const core::Error error = error_of([&] { StagedFile::stage(large, fast_, notes_); });
  EXPECT_EQ(error.kind(), core::ErrorKind::cannot_create);
  EXPECT_NE(std::string(error.what()).find(fast_ + " has room for "), std::string::npos) << error.what();
  EXPECT_TRUE(copies().empty());
}

}  // namespace
}  // namespace stoker::data
