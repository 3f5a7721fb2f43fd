// SPDX-License-Identifier: Apache-2.0
// Copies of files: whole or absent, made once, and gone with the last who uses them.
#include "data/storage/staged_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/log.h"
#include "core/system/file.h"
#include "core/system/stop_signal.h"
#include "data/storage/tree_walk.h"
#include "made_data.h"

namespace stoker::data {
namespace {

namespace fs = std::filesystem;

class StagedCopiesTest : public ::testing::Test {
 protected:
  StagedCopiesTest() {
    core::set_console_level(core::LogLevel::error);
    for (int i = 0; i < 40; ++i) names_.push_back("class/" + std::to_string(i) + ".png");
    for (const std::string& name : names_) write(name, "content of " + name);
  }
  ~StagedCopiesTest() override {
    core::request_stop(0);
    core::set_console_level(core::LogLevel::info);
  }

  void write(const std::string& name, const std::string& text) { folder_.write("data/" + name, text); }
  std::string original(const std::string& name) const { return folder_ / ("data/" + name); }
  std::string text_of(const std::string& path) const { return core::read_file(path, 1 << 24); }

  std::shared_ptr<const StagedFiles> stage() { return stage(note_); }
  std::shared_ptr<const StagedFiles> stage(std::string& note) const {
    std::vector<FileStamp> stamps;
    for (const std::string& name : names_) stamps.push_back(stamp_of(original(name)));
    return StagedFiles::stage({folder_ / "data", static_cast<int64_t>(names_.size()),
                               [&](int64_t i) { return std::string_view(names_[static_cast<size_t>(i)]); },
                               [&](int64_t i) { return original(names_[static_cast<size_t>(i)]); },
                               [&](int64_t i) { return stamps[static_cast<size_t>(i)]; }},
                              fast_, note);
  }
  void expect_whole(const StagedFiles& staged) const {
    for (const std::string& name : names_) {
      const std::string copy = staged.copy_of(name);
      ASSERT_EQ(text_of(copy), text_of(original(name))) << name;
      EXPECT_EQ(stamp_of(copy).modified_ns, stamp_of(original(name)).modified_ns) << name;
    }
  }
  fs::path folder_of(const StagedFiles& staged) const { return fs::path(staged.copy_of(names_[0])).parent_path(); }
  /// The larger of them is read in several pieces.
  std::vector<std::string> made_archives() {
    return {folder_.write("data/train.h5", pattern_pixels(1280, 960, 3)),
            folder_.write("data/val.h5", pattern_pixels(64, 48, 3))};
  }

  TempFolder folder_;
  const std::string fast_ = folder_.make_folder("fast");
  std::vector<std::string> names_;
  std::string note_;
};

TEST_F(StagedCopiesTest, CopiesAreWholeForTheirUserAloneAndGoWithHim) {
  {
    const auto staged = stage();
    expect_whole(*staged);
    EXPECT_EQ(staged->copy_of(names_[0]).rfind(fast_, 0), 0u);
    EXPECT_EQ(fs::status(folder_of(*staged)).permissions(), fs::perms::owner_all);
    EXPECT_EQ(note_.rfind("copies of 40 files in " + (folder_ / "data") + " are read from " + fast_ + " (", 0), 0u)
        << note_;
  }
  EXPECT_TRUE(fs::is_empty(fast_));
}

TEST_F(StagedCopiesTest, UsersShareTheCopiesAndTheLastOneRemovesThem) {
  auto first = stage();
  auto second = stage();
  EXPECT_NE(note_.find(", 0 B of it copied in "), std::string::npos) << note_;
  EXPECT_EQ(first->copy_of(names_[3]), second->copy_of(names_[3]));
  first.reset();
  expect_whole(*second);
  second.reset();
  EXPECT_TRUE(fs::is_empty(fast_));
}

TEST_F(StagedCopiesTest, OfTwoThatStartTogetherOneCopiesAndTheOtherTakesItsCopies) {
  std::string notes[2];
  std::shared_ptr<const StagedFiles> staged[2];
  std::thread other([&] { staged[1] = stage(notes[1]); });
  staged[0] = stage(notes[0]);
  other.join();
  expect_whole(*staged[0]);
  const auto copied = [](const std::string& note) { return note.find(", 0 B of it copied") == std::string::npos; };
  EXPECT_NE(copied(notes[0]), copied(notes[1])) << notes[0] << "\n" << notes[1];
}

TEST_F(StagedCopiesTest, OfWhatAKilledRunLeftIsReadWhatIsWhole) {
  auto staged = stage();
  const fs::path left = folder_of(*staged);
  const std::string good = staged->copy_of(names_[0]), cut = staged->copy_of(names_[1]),
                    old = staged->copy_of(names_[2]);
  fs::rename(left, folder_ / "kept");  // as kill -9 leaves them
  staged.reset();
  fs::rename(folder_ / "kept", left);
  fs::create_hard_link(good, folder_ / "witness");
  const auto time = fs::last_write_time(cut);
  fs::resize_file(cut, 3);  // the right time, not the right size
  fs::last_write_time(cut, time);
  std::ofstream(old, std::ios::in | std::ios::out) << "X";  // the right size, not the right time
  fs::last_write_time(old, time + std::chrono::hours(1));
  const std::string part = cut + ".7.part";
  std::ofstream(part) << "half";
  staged = stage();
  expect_whole(*staged);
  EXPECT_TRUE(fs::equivalent(good, folder_ / "witness")) << "the same file, not a new copy";
  EXPECT_FALSE(fs::exists(part));
}

TEST_F(StagedCopiesTest, AnOriginalThatChangesIsCopiedAnew) {
  const auto before = stage();
  write(names_[5], "something else");
  const auto staged = stage();
  expect_whole(*staged);
}

TEST_F(StagedCopiesTest, WhatCannotBeReadHasNoCopyAndEndsNothing) {
  names_.push_back("class/missing.png");
  const auto staged = stage();
  EXPECT_FALSE(fs::exists(staged->copy_of("class/missing.png")));
  EXPECT_TRUE(fs::exists(staged->copy_of(names_[0])));
}

TEST_F(StagedCopiesTest, TheSameFileMayBeListedTwice) {
  for (int i = 0; i < 200; ++i) names_.push_back(names_[0]);
  expect_whole(*stage());
}

TEST_F(StagedCopiesTest, FilesThatDoNotFitAreRefusedBeforeTheFirstIsCopied) {
  names_.push_back("class/large.png");
  write("class/large.png", "x");
  fs::resize_file(original("class/large.png"), core::free_bytes(fast_) + (uint64_t{1} << 30));  // a hole
  const core::Error error = error_of([&] { stage(); });
  EXPECT_EQ(error.kind(), core::ErrorKind::cannot_create);
  const std::string text = error.what();
  EXPECT_EQ(text.rfind(fast_ + " has ", 0), 0u) << text;
  EXPECT_NE(text.find("41 files in " + (folder_ / "data") + " that have no copy there yet take "), std::string::npos)
      << text;
  EXPECT_TRUE(fs::is_empty(fast_));
}

TEST_F(StagedCopiesTest, FilesGivenByTheirPathsAreReadFromTheirCopiesWhileTheyAreTheSame) {
  const std::vector<std::string> paths = made_archives();
  const auto staged = StagedFiles::stage(paths, fast_, note_);
  for (const std::string& path : paths) {
    const std::string copy = staged->copy_or_original(path);
    EXPECT_EQ(fs::path(copy).parent_path(), folder_of(*staged));
    EXPECT_TRUE(text_of(copy) == text_of(path));
  }
  std::ofstream(paths[1], std::ios::app) << "more";
  EXPECT_EQ(staged->copy_or_original(paths[1]), paths[1]);
  const auto anew = StagedFiles::stage(paths, fast_, note_);
  EXPECT_TRUE(text_of(anew->copy_or_original(paths[1])) == text_of(paths[1]));
  EXPECT_NE(anew->copy_or_original(paths[1]), paths[1]);
}

TEST_F(StagedCopiesTest, AStopLeavesNothingBehind) {
  core::request_stop(SIGTERM);
  EXPECT_THROW(stage(), core::StopRequested);
  EXPECT_TRUE(fs::is_empty(fast_));
}

TEST_F(StagedCopiesTest, AMissingFolderIsNamed) {
  fs::remove(fast_);
  const core::Error error = error_of([&] { stage(); });
  EXPECT_EQ(error.kind(), core::ErrorKind::no_input);
  EXPECT_EQ(error.what(), "--stage-dir " + fast_ + " is not a folder");
}

TEST_F(StagedCopiesTest, CopiesOfAnotherUserAreRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  fs::path folder;
  {
    const auto staged = stage();
    folder = folder_of(*staged);
  }
  fs::create_directory(folder);
  ASSERT_EQ(::chown(folder.c_str(), 65534, 65534), 0);
  EXPECT_EQ(error_of([&] { stage(); }).kind(), core::ErrorKind::permission);
  EXPECT_TRUE(fs::exists(folder));
}

}  // namespace
}  // namespace stoker::data
