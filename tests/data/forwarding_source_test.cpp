// SPDX-License-Identifier: Apache-2.0
// A source in front of another one hands on every question. That none is forgotten the compiler sees to: all methods of
// Source and of its facets are pure, here as well, so that a new one fails to build until it is tested below.
#include "data/source.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "core/format.h"
#include "data/cache/cache_plan.h"
#include "data/cache/cached_source.h"
#include "data/dataset/file_source.h"
#include "data/dataset/held_out.h"

namespace stoker::data {
namespace {

/// Writes down what it is asked. Each answer differs from what a source without a say would answer, and from that of
/// any other index. Sample i has i + 2 frames.
class RecordingSource : public Source, private FrameSource, private StoredSamples, private ExcerptSource {
 public:
  explicit RecordingSource(int64_t size) : size_(size) {
    class_names_ = {"a", "b"};
    target_names_ = {"x", "y"};
    fingerprint_ = "recorded";
  }

  int64_t size() const override { return size_; }
  int64_t label(int64_t index) const override { return note("label", index), 100 + index; }
  void targets(int64_t index, float* out) const override {
    note("targets", index);
    out[0] = static_cast<float>(index);
    out[1] = 0.5f;
  }
  std::string name(int64_t index) const override { return note("name", index), core::format("/data/{}", index); }
  std::string relative_name(int64_t index) const override {
    return note("relative_name", index), core::format("{}", index);
  }
  RegionOfInterest region(int64_t index) const override {
    return note("region", index), RegionOfInterest{static_cast<double>(index), 2, 3, 4};
  }
  SampleShape fixed_shape() const override { return {7, 0, 0, 0, Element::uint8}; }
  std::string read(int64_t index, std::vector<uint8_t>& buffer, SampleContent& content) const override {
    return note("read", index), give(index, buffer, content);
  }
  SourceMemory memory() const override { return {1000 * size_, 77}; }
  const FrameSource* frames() const override { return this; }
  const StoredSamples* stored() const override { return this; }
  const ExcerptSource* excerpts() const override { return this; }

  int64_t frame_count(int64_t index) const override { return note("frame_count", index), index + 2; }
  std::string frame_name(int64_t index, int64_t frame) const override {
    return note("frame_name", index), core::format("{}.png", frame);
  }
  std::string read_frame(int64_t index, int64_t frame, std::vector<uint8_t>& buffer,
                         SampleContent& content) const override {
    return note("read_frame", index), give(10 * index + frame, buffer, content);
  }
  int64_t frame_bytes(int64_t index, int64_t frame) const override {
    return note("frame_bytes", index), 1000 * index + frame;
  }
  int64_t stored_bytes(int64_t index) const override { return note("stored_bytes", index), 4; }
  std::string read_head(int64_t index, int64_t bytes, std::vector<uint8_t>& buffer,
                        SampleContent& content) const override {
    return note(core::format("read_head of {}", bytes), index), give(index, buffer, content);
  }
  std::vector<int64_t> run_ends() const override { return {2, size_}; }
  std::string read_excerpt(int64_t index, double position, std::vector<uint8_t>& buffer,
                           SampleContent& content) const override {
    return note(core::format("read_excerpt at {}", position), index), give(index, buffer, content);
  }
  std::string read_whole(int64_t index, std::vector<uint8_t>& buffer, SampleContent& content) const override {
    return note("read_whole", index), give(index, buffer, content);
  }

  mutable std::map<std::string, std::vector<int64_t>> asked;  ///< by method: the indices

 private:
  void note(const std::string& method, int64_t index) const { asked[method].push_back(index); }
  static std::string give(int64_t value, std::vector<uint8_t>& buffer, SampleContent& content) {
    buffer.assign(4, static_cast<uint8_t>(value));
    content.bytes = buffer.data();
    content.size = buffer.size();
    return "";
  }

  const int64_t size_;
};

class Plain : public ForwardingSource {
 public:
  explicit Plain(std::shared_ptr<const Source> behind) : ForwardingSource(std::move(behind)) {}
};

int first_byte(const std::function<std::string(std::vector<uint8_t>&, SampleContent&)>& read) {
  std::vector<uint8_t> buffer;
  SampleContent content;
  const std::string cause = read(buffer, content);
  return cause.empty() && content.size == 4 ? content.bytes[0] : -1;
}

/// Asks `front` everything about its sample `index`, which is sample `inner` of `recorder`. Of reading frames only
/// where `front` leaves it to `recorder`.
void expect_all_forwarded(const Source& front, const RecordingSource& recorder, int64_t index, int64_t inner,
                          bool frames_too = true) {
  recorder.asked.clear();
  using Indices = std::vector<int64_t>;
  EXPECT_EQ(front.class_names(), recorder.class_names());
  EXPECT_EQ(front.target_names(), recorder.target_names());
  EXPECT_EQ(front.fixed_shape(), recorder.fixed_shape());
  EXPECT_EQ(front.label(index), 100 + inner);
  std::array<float, 2> targets{};
  front.targets(index, targets.data());
  EXPECT_EQ(targets, (std::array<float, 2>{static_cast<float>(inner), 0.5f}));
  EXPECT_EQ(front.name(index), core::format("/data/{}", inner));
  EXPECT_EQ(front.relative_name(index), core::format("{}", inner));
  EXPECT_EQ(front.region(index).left, static_cast<double>(inner));
  EXPECT_EQ(front.region(index).width, 3);
  EXPECT_GE(front.memory().list_bytes, 1);
  EXPECT_EQ(front.memory().cached_bytes, 77);

  ASSERT_NE(front.excerpts(), nullptr);
  EXPECT_EQ(first_byte([&](auto& buffer, auto& content) {
              return front.excerpts()->read_excerpt(index, 0.25, buffer, content);
            }),
            inner);
  EXPECT_EQ(recorder.asked["read_excerpt at 0.25"], Indices{inner});
  EXPECT_EQ(
      first_byte([&](auto& buffer, auto& content) { return front.excerpts()->read_whole(index, buffer, content); }),
      inner);
  EXPECT_EQ(recorder.asked["read_whole"], Indices{inner});
  ASSERT_NE(front.stored(), nullptr);
  EXPECT_EQ(front.stored()->stored_bytes(index), 4);
  EXPECT_EQ(
      first_byte([&](auto& buffer, auto& content) { return front.stored()->read_head(index, 3, buffer, content); }),
      inner);
  EXPECT_EQ(recorder.asked["read_head of 3"], Indices{inner});
  EXPECT_EQ(front.stored()->run_ends().size(), 2u);
  EXPECT_EQ(front.stored()->run_ends().back(), front.size());

  ASSERT_NE(front.frames(), nullptr);
  EXPECT_EQ(front.frames()->frame_count(index), inner + 2);
  EXPECT_EQ(front.frames()->frame_name(index, 1), "1.png");
  EXPECT_EQ(front.frames()->frame_bytes(index, 1), 1000 * inner + 1);
  if (!frames_too) return;
  EXPECT_EQ(first_byte([&](auto& buffer, auto& content) { return front.read(index, buffer, content); }), inner);
  EXPECT_EQ(recorder.asked["read"], Indices{inner});
  EXPECT_EQ(
      first_byte([&](auto& buffer, auto& content) { return front.frames()->read_frame(index, 1, buffer, content); }),
      10 * inner + 1);
  EXPECT_EQ(recorder.asked["read_frame"], Indices{inner});
}

TEST(ForwardingSourceTest, HandsOnEveryMethodAndFacet) {
  const auto recorder = std::make_shared<RecordingSource>(5);
  const Plain front(recorder);
  EXPECT_EQ(front.size(), 5);
  EXPECT_EQ(front.fingerprint(), "recorded");
  EXPECT_EQ(front.memory().list_bytes, 5000);
  EXPECT_EQ(front.stored()->run_ends(), (std::vector<int64_t>{2, 5}));
  expect_all_forwarded(front, *recorder, 3, 3);
}

TEST(ForwardingSourceTest, HasNoFacetThatTheSourceBehindLacks) {
  class Bare : public Plain {
   public:
    Bare() : Plain(std::make_shared<RecordingSource>(1)) {}
    const FrameSource* frames() const override { return nullptr; }
    const StoredSamples* stored() const override { return nullptr; }
  };
  const Plain front(std::make_shared<Bare>());
  EXPECT_EQ(front.frames(), nullptr);
  EXPECT_EQ(front.stored(), nullptr);
  EXPECT_FALSE(holds_videos(front));
  EXPECT_EQ(stored_bytes(front, 0), -1) << "not known";
  EXPECT_EQ(run_ends(front), std::vector<int64_t>{1}) << "a single run";
  EXPECT_EQ(first_byte([&](auto& buffer, auto& content) { return read_head(front, 0, 3, buffer, content); }), 0)
      << "all of it";
}

TEST(ForwardingSourceTest, ASubsetAsksForTheSamplesOfTheWhole) {
  const auto recorder = std::make_shared<RecordingSource>(6);
  const auto half = evenly_spaced(recorder, 3);  // 0, 2, 4
  ASSERT_EQ(half->size(), 3);
  expect_all_forwarded(*half, *recorder, 2, 4);
  expect_all_forwarded(*half, *recorder, 1, 2);
  EXPECT_EQ(run_ends(*half), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(half->memory().list_bytes, 3000 + 3 * 4) << "its share, and its indices";
  EXPECT_NE(half->fingerprint(), recorder->fingerprint());
}

TEST(ForwardingSourceTest, ASubsetOfASubsetIsOneOfTheWhole) {
  const auto recorder = std::make_shared<RecordingSource>(8);
  const auto quarter = evenly_spaced(evenly_spaced(recorder, 4), 2);  // 0, 4
  expect_all_forwarded(*quarter, *recorder, 1, 4);
}

TEST(ForwardingSourceTest, VideosWithFramesFromElsewhereHandOnAllButReading) {
  const auto recorder = std::make_shared<RecordingSource>(4);
  const auto front = with_frames_from(recorder, make_frame_list(recorder));
  EXPECT_EQ(front->size(), 4);
  EXPECT_EQ(front->fingerprint(), "recorded");
  EXPECT_EQ(front->memory().list_bytes, 4000);
  std::vector<uint8_t> buffer;
  SampleContent content;
  EXPECT_EQ(front->label(2), 102);
  EXPECT_EQ(front->frames()->read_frame(2, 1, buffer, content), "");
  EXPECT_EQ(content.bytes[0], 21) << "video 2, frame 1";
  EXPECT_EQ(front->read(2, buffer, content), "");
  EXPECT_EQ(content.bytes[0], 20) << "its first frame";
}

/// A recorder without videos behind a cache.
class Stills : public ForwardingSource {
 public:
  explicit Stills(std::shared_ptr<const Source> behind) : ForwardingSource(std::move(behind)) {}
  const FrameSource* frames() const override { return nullptr; }
};

TEST(ForwardingSourceTest, ACacheAnswersAllButReadingAsTheSourceBehindIt) {
  const auto recorder = std::make_shared<RecordingSource>(4);
  CacheSettings settings;
  settings.tier = config::CacheTier::compressed;
  settings.budget_bytes = 1 << 20;
  const auto stills = std::make_shared<Stills>(recorder);
  const auto cache = make_cached_source(stills, plan_cache(stills, settings), settings);
  ASSERT_NE(cache, stills);
  EXPECT_EQ(cache->size(), 4);
  EXPECT_EQ(cache->fingerprint(), "recorded");
  EXPECT_EQ(cache->memory().list_bytes, 4000);
  EXPECT_EQ(cache->memory().cached_bytes, 77) << "of the source behind; none of its own yet";
  EXPECT_EQ(cache->region(3).left, 3);
  EXPECT_EQ(run_ends(*cache), (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(first_byte([&](auto& buffer, auto& content) { return cache->read(3, buffer, content); }), 3);
  EXPECT_EQ(first_byte([&](auto& buffer, auto& content) { return cache->read(3, buffer, content); }), 3);
  EXPECT_EQ(recorder->asked["read"], std::vector<int64_t>({3})) << "the second time from memory";
  EXPECT_EQ(cache->memory().cached_bytes, 77 + 4);
}

}  // namespace
}  // namespace stoker::data
