// SPDX-License-Identifier: Apache-2.0
#include "data/cache/cache_plan.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "core/format.h"
#include "core/system/worker_pool.h"
#include "data/image/decode.h"
#include "data/source.h"

namespace stoker::data {

// How much memory samples take once they are decoded, from their headers alone. Decodes nothing, and
// is independent of caches.

/// How to look at headers.
struct HeaderScan {
  int channels = 3;  ///< channels of the decoded pixels
  DecodeLimits limits;
  int threads = 1;
};

/// Bytes of samples [first, first + count) as uint8 pixels; 0 for one whose header cannot be read. Throws
/// what Source::read throws, and core::StopRequested.
std::vector<int64_t> decoded_sizes(const Source& source, const HeaderScan& scan, int64_t first, int64_t count);

/// Bytes of all samples as uint8 pixels, from at most 256 headers spread evenly: within some 10 % where sizes
/// vary as photographs do. Throws as above.
int64_t estimated_decoded_bytes(const Source& source, const HeaderScan& scan);

namespace {

/// Holds the header of all but a few files; those are then read whole.
constexpr int64_t kHeadBytes = 32 << 10;

int64_t decoded_size(const Source& source, const HeaderScan& scan, int64_t index, std::vector<uint8_t>& buffer) {
  SampleContent content;
  if (!read_head(source, index, kHeadBytes, buffer, content).empty()) return 0;
  if (content.is_pixels()) return int64_t{content.height} * content.width * scan.channels;
  ImageHeader header;
  if (!read_header(content.bytes, content.size, scan.limits, header).empty()) {
    if (!source.read(index, buffer, content).empty()) return 0;
    if (!read_header(content.bytes, content.size, scan.limits, header).empty()) return 0;
  }
  return int64_t{header.height} * header.width * scan.channels;
}

/// Calls take(position, decoded size of sample index_of(position)) for every position below `count`, on several
/// threads.
template <typename IndexOf, typename Take>
void visit_sizes(const Source& source, const HeaderScan& scan, int64_t count, const IndexOf& index_of,
                 const Take& take) {
  core::for_each_index(count, scan.threads, [&] {
    return [&, buffer = std::vector<uint8_t>()](int64_t position) mutable {
      take(position, decoded_size(source, scan, index_of(position), buffer));
    };
  });
}

}  // namespace

std::vector<int64_t> decoded_sizes(const Source& source, const HeaderScan& scan, int64_t first, int64_t count) {
  std::vector<int64_t> sizes(static_cast<size_t>(count));
  visit_sizes(
      source, scan, count, [&](int64_t position) { return first + position; },
      [&](int64_t position, int64_t bytes) { sizes[static_cast<size_t>(position)] = bytes; });
  return sizes;
}

int64_t estimated_decoded_bytes(const Source& source, const HeaderScan& scan) {
  constexpr int64_t kHeaders = 256;
  const int64_t headers = std::min(kHeaders, source.size());
  std::atomic<int64_t> total{0};
  visit_sizes(
      source, scan, headers, [&](int64_t position) { return position * source.size() / headers; },
      [&](int64_t, int64_t bytes) { total += bytes; });
  return headers == 0 ? 0
                      : static_cast<int64_t>(static_cast<double>(total) / static_cast<double>(headers) *
                                             static_cast<double>(source.size()));
}

namespace {

using config::CacheTier;
using core::format;

/// Per sample: offset, two sides of 16 bits, state.
constexpr int64_t kBookkeepingBytes = 8 + 4 + 1;
constexpr uint64_t kSlotAlignment = 64;  // bytes: a cache line has one sample

std::string size_text(int64_t bytes) { return core::bytes_text(static_cast<double>(bytes)); }

/// Adds samples to a plan one after the other while they fit.
class Planner {
 public:
  Planner(CachePlan& plan, int64_t budget_bytes) : plan_(plan), budget_(budget_bytes) { plan.offsets = {0}; }

  bool add(int64_t bytes) {
    const uint64_t end = plan_.offsets.back() + aligned(bytes);
    const int64_t needed = static_cast<int64_t>(end) + (plan_.held() + 1) * kBookkeepingBytes;
    if (needed > budget_) return false;
    plan_.offsets.push_back(end);
    return true;
  }

 private:
  static uint64_t aligned(int64_t bytes) {
    return (static_cast<uint64_t>(bytes) + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
  }

  CachePlan& plan_;
  const int64_t budget_;
};

/// Headers are looked at in portions, so that a small budget does not make a pass over a large set.
void add_pixels(const Source& source, const CacheSettings& settings, Planner& planner, CachePlan& plan) {
  constexpr int64_t kPortion = 8192;
  const HeaderScan scan{settings.channels, settings.limits, settings.scan_threads};
  while (plan.pixel_samples < source.size()) {
    const int64_t count = std::min(kPortion, source.size() - plan.pixel_samples);
    for (const int64_t bytes : decoded_sizes(source, scan, plan.pixel_samples, count)) {
      if (!planner.add(bytes)) return;
      ++plan.pixel_samples;
    }
  }
}

void add_bytes(const Source& source, Planner& planner, CachePlan& plan) {
  while (plan.held() < source.size()) {
    const int64_t bytes = stored_bytes(source, plan.held());
    if (bytes < 0 || !planner.add(bytes)) return;
    ++plan.byte_samples;
  }
}

/// Bytes of all samples as they are stored; -1 when not known.
int64_t all_stored_bytes(const Source& source) {
  int64_t total = 0;
  for (int64_t i = 0; i < source.size(); ++i) {
    const int64_t bytes = stored_bytes(source, i);
    if (bytes < 0) return -1;
    total += bytes;
  }
  return total;
}

CachePlan no_cache(const std::string& reason) {
  CachePlan plan;
  plan.reason = reason;
  return plan;
}

CachePlan held_as_asked(const Source& source, const CacheSettings& settings) {
  CachePlan plan;
  plan.tier = *settings.tier;
  plan.reason = "requested";
  Planner planner(plan, settings.budget_bytes);
  if (plan.tier == CacheTier::ram) add_pixels(source, settings, planner, plan);
  add_bytes(source, planner, plan);
  return plan;
}

CachePlan best_that_fits(const Source& source, const CacheSettings& settings) {
  const std::string budget = size_text(settings.budget_bytes);
  const int64_t decoded = estimated_decoded_bytes(source, {settings.channels, settings.limits, settings.scan_threads});
  constexpr double kEstimateMayBeHighBy = 1.25;
  if (static_cast<double>(decoded) <= kEstimateMayBeHighBy * static_cast<double>(settings.budget_bytes)) {
    CachePlan plan;
    plan.tier = CacheTier::ram;
    Planner planner(plan, settings.budget_bytes);
    add_pixels(source, settings, planner, plan);
    if (plan.held() == source.size()) {
      plan.reason = format("the pixels are {}, which the budget of {} holds", size_text(plan.planned_bytes()), budget);
      return plan;
    }
  }
  const std::string too_large = format("the pixels, about {}, exceed the budget of {}", size_text(decoded), budget);
  const int64_t stored = all_stored_bytes(source);
  if (stored < 0) return no_cache(too_large + ", and how much is stored is not known");
  CachePlan plan;
  plan.tier = CacheTier::compressed;
  Planner planner(plan, settings.budget_bytes);
  if (stored <= settings.budget_bytes) add_bytes(source, planner, plan);
  if (plan.held() < source.size()) {
    return no_cache(format("{}; so do the files, {}: the page cache serves", too_large, size_text(stored)));
  }
  plan.reason = format("{}; the files, {}, fit", too_large, size_text(stored));
  return plan;
}

}  // namespace

int64_t CachePlan::planned_bytes() const { return memory_bytes() + held() * kBookkeepingBytes; }

CachePlan plan_cache(const std::shared_ptr<const Source>& source, const CacheSettings& settings) {
  if (settings.tier == CacheTier::none) return no_cache("requested");
  if (source->fixed_shape().height > 0) return no_cache("nothing is decoded: the page cache of the system serves");
  if (holds_pixels(*source)) return no_cache("the data is in memory as pixels already");
  if (decodes_videos(*source)) return no_cache("frames of video files are decoded as they are needed");
  const std::shared_ptr<const Source> images = holds_videos(*source) ? make_frame_list(source) : source;
  CachePlan plan = settings.tier ? held_as_asked(*images, settings) : best_that_fits(*images, settings);
  plan.samples = images->size();
  return plan;
}

namespace {

/// Where the frames of each video begin in the list, and behind the last one.
std::vector<int64_t> starts_of(const Source& videos) {
  std::vector<int64_t> starts = {0};
  for (int64_t i = 0; i < videos.size(); ++i) starts.push_back(starts.back() + videos.frames()->frame_count(i));
  return starts;
}

/// No ForwardingSource: a sample is one frame, and what holds for a video (its shape, its memory) does not for a frame.
class FrameList : public LeafSource, private StoredSamples {
 public:
  explicit FrameList(std::shared_ptr<const Source> videos) : videos_(std::move(videos)), starts_(starts_of(*videos_)) {
    class_names_ = videos_->class_names();
    fingerprint_ = "frames of " + videos_->fingerprint();
  }

  int64_t size() const override { return starts_.back(); }
  int64_t label(int64_t index) const override { return videos_->label(place(index).video); }
  std::string name(int64_t index) const override { return named(videos_->name(place(index).video), index); }
  std::string relative_name(int64_t index) const override {
    return named(videos_->relative_name(place(index).video), index);
  }
  const StoredSamples* stored() const override { return this; }
  std::string read(int64_t index, std::vector<uint8_t>& buffer, SampleContent& content) const override {
    const Place at = place(index);
    return videos_->frames()->read_frame(at.video, at.frame, buffer, content);
  }
  int64_t stored_bytes(int64_t index) const override {
    const Place at = place(index);
    return videos_->frames()->frame_bytes(at.video, at.frame);
  }
  std::string read_head(int64_t index, int64_t, std::vector<uint8_t>& buffer, SampleContent& content) const override {
    return read(index, buffer, content);
  }
  std::vector<int64_t> run_ends() const override { return {size()}; }

 private:
  struct Place {
    int64_t video, frame;
  };
  Place place(int64_t index) const {
    const int64_t video = std::upper_bound(starts_.begin(), starts_.end(), index) - starts_.begin() - 1;
    return {video, index - starts_[static_cast<size_t>(video)]};
  }
  std::string named(const std::string& video, int64_t index) const {
    const Place at = place(index);
    return video + "/" + videos_->frames()->frame_name(at.video, at.frame);
  }

  const std::shared_ptr<const Source> videos_;
  const std::vector<int64_t> starts_;
};

/// Videos whose frames are read from another source; all else is theirs.
class VideosOfFrames : public ForwardingSource {
 public:
  VideosOfFrames(std::shared_ptr<const Source> videos, std::shared_ptr<const Source> frames)
      : ForwardingSource(std::move(videos)), frames_(std::move(frames)), starts_(starts_of(behind())) {}

  SourceMemory memory() const override {
    SourceMemory memory = behind().memory();
    memory.cached_bytes = frames_->memory().cached_bytes;
    return memory;
  }
  std::string read(int64_t index, std::vector<uint8_t>& buffer, SampleContent& content) const override {
    return read_frame(index, 0, buffer, content);
  }

 private:
  std::string read_frame(int64_t index, int64_t frame, std::vector<uint8_t>& buffer,
                         SampleContent& content) const override {
    return frames_->read(starts_[static_cast<size_t>(index)] + frame, buffer, content);
  }

  const std::shared_ptr<const Source> frames_;
  const std::vector<int64_t> starts_;
};

}  // namespace

std::shared_ptr<const Source> make_frame_list(std::shared_ptr<const Source> videos) {
  return std::make_shared<FrameList>(std::move(videos));
}

std::shared_ptr<const Source> with_frames_from(std::shared_ptr<const Source> videos,
                                               std::shared_ptr<const Source> frames) {
  return std::make_shared<VideosOfFrames>(std::move(videos), std::move(frames));
}

}  // namespace stoker::data
