// SPDX-License-Identifier: Apache-2.0
#include "data/audit/audit.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "data/audit/seen_contents.h"
#include "data/dataset/file_source.h"
#include "made_data.h"

namespace stoker::data {
namespace {

/// Splits of files that are written one by one.
class AuditTest : public ::testing::Test {
 protected:
  void add(const std::string& split, const std::string& name, int64_t label, const Bytes& content) {
    struct stat info {};
    ASSERT_EQ(::stat(folder_.write(split + "/" + name, content).c_str(), &info), 0);
    const FileStamp stamp = {info.st_size, info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec};
    auto found = lists_.find(split);
    if (found == lists_.end()) found = lists_.emplace(split, FileList(folder_ / split)).first;
    found->second.add(name, label, stamp);
  }
  AuditFindings findings(int64_t threads = 1) {
    std::vector<SplitToAudit> splits;
    for (const auto& [name, list] : lists_) splits.push_back({name, make_file_source(list, {"cat", "dog"})});
    AuditSettings settings;
    settings.threads = threads;
    return audit(splits, settings);
  }

  const TempFolder folder_;
  std::map<std::string, FileList> lists_;
};

Bytes shifted_pattern(int by, int channels = 3) {
  Bytes pixels = pattern_pixels(16, 12, channels);
  for (uint8_t& value : pixels) value = static_cast<uint8_t>(value + by);
  return pixels;
}

TEST_F(AuditTest, EqualPixelsAreFoundAcrossSplitsAndFileFormats) {
  add("train", "a.png", 0, png_of(shifted_pattern(0), 16, 12, 3));
  add("train", "b.png", 1, png_of(shifted_pattern(9), 16, 12, 3));
  add("val", "c.bmp", 0, bmp_of(shifted_pattern(0), 16, 12, 3));
  const AuditFindings found = findings();
  ASSERT_EQ(found.groups.size(), 1u);
  const DuplicateGroup& group = found.groups.front();
  EXPECT_EQ(group.members, (std::vector<SampleAt>{{0, 0}, {1, 0}}));
  EXPECT_TRUE(group.exact);
  EXPECT_TRUE(group.across_splits);
  EXPECT_FALSE(group.labels_differ);
}

TEST_F(AuditTest, EqualPixelsOfDifferentClassesContradictEachOther) {
  add("train", "a.png", 0, png_of(shifted_pattern(0), 16, 12, 3));
  add("train", "b.png", 1, png_of(shifted_pattern(0), 16, 12, 3));
  const AuditFindings found = findings();
  ASSERT_EQ(found.groups.size(), 1u);
  EXPECT_TRUE(found.groups.front().labels_differ);
  EXPECT_FALSE(found.groups.front().across_splits);
}

TEST_F(AuditTest, ShapeCountsEvenWherePixelsInARowAreEqual) {
  const Bytes row = shifted_pattern(0, 1);
  add("train", "a.png", 0, png_of(row, 16, 12, 1));
  add("train", "b.png", 0, png_of(row, 12, 16, 1));
  EXPECT_TRUE(findings().groups.empty());
}

TEST_F(AuditTest, AGrayPictureStoredAsColourIsTheSamePicture) {
  const Bytes gray = shifted_pattern(0, 1);
  Bytes rgb;
  for (const uint8_t value : gray) rgb.insert(rgb.end(), 3, value);
  add("train", "a.png", 0, png_of(gray, 16, 12, 1));
  add("train", "b.png", 0, png_of(rgb, 16, 12, 3));
  const AuditFindings found = findings();
  ASSERT_EQ(found.groups.size(), 1u);
  ASSERT_EQ(found.kinds.size(), 2u);
  EXPECT_EQ(found.kinds[1].what, "gray, 8 bits");
  EXPECT_EQ(found.kinds[0].what, "RGB, 8 bits (but gray)");
}

TEST_F(AuditTest, CorruptFilesAreNamedWithTheirReasonAndTheRestIsLookedAt) {
  add("train", "a.png", 0, png_of(shifted_pattern(0), 16, 12, 3));
  Bytes cut = png_of(shifted_pattern(1), 16, 12, 3);
  cut.resize(cut.size() / 2);
  add("train", "b.png", 0, cut);
  add("train", "c.png", 1, png_of(shifted_pattern(0), 16, 12, 3));
  for (const int64_t threads : {1, 3}) {
    const AuditFindings found = findings(threads);
    ASSERT_EQ(found.bad.size(), 1u);
    EXPECT_EQ(found.bad.front().at, (SampleAt{0, 1}));
    EXPECT_NE(found.bad.front().reason, "");
    EXPECT_EQ(found.groups.size(), 1u);
  }
}

TEST_F(AuditTest, ImagesOfOneColourAreAFindingAndNoDuplicates) {
  add("train", "a.png", 0, png_of(flat_pixels(8, 8, {1, 2, 3}), 8, 8, 3));
  add("train", "b.png", 0, png_of(flat_pixels(8, 8, {1, 2, 3}), 8, 8, 3));
  add("val", "c.png", 1, png_of(shifted_pattern(0), 16, 12, 3));
  const AuditFindings found = findings();
  EXPECT_EQ(found.one_value, (std::vector<SampleAt>{{0, 0}, {0, 1}}));
  EXPECT_TRUE(found.groups.empty());
}

TEST_F(AuditTest, ClassesAndSizesAreCountedBySplit) {
  add("train", "a.png", 0, png_of(shifted_pattern(0), 16, 12, 3));
  add("train", "b.png", 0, png_of(shifted_pattern(1), 16, 12, 3));
  add("val", "c.png", 1, png_of(shifted_pattern(2), 12, 16, 3));
  const AuditFindings found = findings();
  ASSERT_EQ(found.splits.size(), 2u);
  EXPECT_EQ(found.splits[0].class_samples, (std::vector<int64_t>{2, 0}));
  EXPECT_EQ(found.splits[1].class_samples, (std::vector<int64_t>{0, 1}));
  ASSERT_EQ(found.sizes.size(), 2u);
  EXPECT_EQ(found.sizes[0].what, "16 x 12");
  EXPECT_EQ(found.sizes[0].samples, 2);
}

/// One content of 40 kB, of which byte `changed` differs.
SampleContent long_content(std::vector<uint8_t>& bytes, size_t changed) {
  bytes.assign(40'000, 7);
  bytes[changed] ^= 1;
  SampleContent content;
  content.bytes = bytes.data();
  content.size = bytes.size();
  return content;
}

TEST(DuplicateGroupTest, ExamplesShowTheFirstOfEachSplitBeforeTheOthers) {
  DuplicateGroup group;
  for (int64_t index = 0; index < 9; ++index) group.members.push_back({0, index});
  group.members.push_back({1, 7});
  EXPECT_EQ(group.examples(3), (std::vector<SampleAt>{{0, 0}, {1, 7}, {0, 1}}));
  EXPECT_EQ(group.examples(99).size(), group.members.size());
}

TEST(SeenContentsTest, EqualContentsAreFoundAndOthersAreNot) {
  std::vector<uint8_t> bytes;
  SeenContents training(4), validation(3);
  training.add(1, long_content(bytes, 0));
  training.add(2, long_content(bytes, 20'001));
  validation.add(0, long_content(bytes, 39'999));
  validation.add(1, long_content(bytes, 20'001));
  validation.add(2, long_content(bytes, 20'001));
  using Pairs = std::vector<std::pair<int64_t, int64_t>>;
  EXPECT_EQ(validation.found_in(training), (Pairs{{1, 2}, {2, 2}}));
  training.stop();
  training.add(0, long_content(bytes, 39'999));
  EXPECT_EQ(validation.found_in(training).size(), 2u);
}

TEST(SeenContentsTest, VideosAreTheSameWhenTheFramesThatWereReadAre) {
  std::vector<uint8_t> bytes;
  SeenContents training(3), validation(3);
  const auto add = [&](SeenContents& seen, int64_t video, const std::vector<int64_t>& frames, int64_t all) {
    for (const int64_t frame : frames)
      seen.add_frame(video, frame, all, long_content(bytes, static_cast<size_t>(frame)));
  };
  add(training, 0, {0, 1, 2}, 3);
  add(training, 1, {0, 1}, 3);
  add(validation, 0, {2, 1, 0, 2}, 3);
  add(validation, 1, {0, 1, 2}, 4);
  using Pairs = std::vector<std::pair<int64_t, int64_t>>;
  EXPECT_EQ(validation.found_in(training), (Pairs{{0, 0}}));
}

TEST(SeenContentsTest, WhatAnotherProcessHasSeenCounts) {
  std::vector<uint8_t> bytes;
  SeenContents here(2), there(2), validation(1);
  there.add(1, long_content(bytes, 0));
  validation.add(0, long_content(bytes, 0));
  EXPECT_TRUE(validation.found_in(here).empty());
  for (const auto& [sample, digest] : there.seen()) here.add_seen(sample, digest);
  using Pairs = std::vector<std::pair<int64_t, int64_t>>;
  EXPECT_EQ(validation.found_in(here), (Pairs{{0, 1}}));
}

TEST_F(AuditTest, AWatchedSourceGivesTheSameAndNotesWhatItGives) {
  add("train", "a.png", 0, png_of(shifted_pattern(0), 16, 12, 3));
  add("train", "b.png", 1, png_of(shifted_pattern(1), 16, 12, 3));
  add("val", "c.png", 1, png_of(shifted_pattern(1), 16, 12, 3));
  const auto train = make_file_source(lists_.at("train"), {"cat", "dog"});
  const auto val = make_file_source(lists_.at("val"), {"cat", "dog"});
  const auto seen = std::make_shared<SeenContents>(2), seen_of_val = std::make_shared<SeenContents>(1);
  const auto watched = make_watched_source(train, seen), watched_val = make_watched_source(val, seen_of_val);
  EXPECT_EQ(watched->fingerprint(), train->fingerprint());
  std::vector<uint8_t> buffer;
  SampleContent content;
  EXPECT_EQ(watched_val->read(0, buffer, content), "");
  EXPECT_TRUE(seen_of_val->found_in(*seen).empty()) << "nothing of the other was read yet";
  for (const int64_t i : {0, 1}) EXPECT_EQ(watched->read(i, buffer, content), "");
  EXPECT_EQ(seen_of_val->found_in(*seen).size(), 1u);
}

TEST(SampleGroupsTest, GrowTogetherWhateverTheOrderOfPairs) {
  SampleGroups groups(6);
  groups.join(5, 3);
  groups.join(1, 2);
  groups.join(3, 1);
  EXPECT_TRUE(groups.are_joined(2, 5));
  EXPECT_FALSE(groups.are_joined(0, 4));
  EXPECT_EQ(groups.of_several(), (std::vector<std::vector<int64_t>>{{1, 2, 3, 5}}));
}

}  // namespace
}  // namespace stoker::data
