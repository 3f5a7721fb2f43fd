// SPDX-License-Identifier: Apache-2.0
#include "data/audit/audit.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"
#include "core/system/worker_pool.h"
#include "data/audit/near_duplicates.h"
#include "data/image/decode.h"
#include "data/image/pixels/image_buffer.h"
#include "data/source.h"

namespace stoker::data {
namespace {

// The facts that an audit collects about one sample: its pixels as a digest, its size and kind, whether it can be read
// at all.

/// The stored form of a sample.
enum class SampleKind : uint8_t { gray, rgb, rgba, float16, float32 };

struct SampleFacts {
  uint64_t digest = 0;  ///< hash of pixels and size; equal for equal pictures, however they are stored
  int32_t width = 0, height = 0;
  SampleKind kind = SampleKind::rgb;
  uint8_t bits = 8;  ///< bits per sample of a picture, as stored
  bool readable = false;
  bool one_value = false;    ///< every pixel has the same colour, or every number the same value
  bool not_finite = false;   ///< some floats are not finite numbers
  bool gray_as_rgb = false;  ///< three channels that are the same everywhere
};

/// Reads samples of one source, on one thread.
class SampleExaminer {
 public:
  SampleExaminer(const Source& source, const DecodeLimits& limits) : source_(source), limits_(limits) {}

  /// Returns "" or why the sample is bad. Every frame of a video counts to the digest, and the one in the middle is
  /// what the rest is about. Throws as Source::read().
  std::string examine(int64_t index, SampleFacts& facts);
  /// Gray pixels of the sample that was examined last, packed; empty where it holds numbers that are not bytes.
  const uint8_t* gray() const { return gray_.empty() ? nullptr : gray_.data(); }

 private:
  std::string examine_image(const SampleContent& content, SampleFacts& facts);
  void examine_pixels(const uint8_t* pixels, int width, int height, int channels, SampleFacts& facts);

  const Source& source_;
  const DecodeLimits limits_;
  std::vector<uint8_t> encoded_, gray_;
  ImageBuffer image_;
};

/// One of 64 bits from a picture's size and bytes.
uint64_t digest_of(const void* bytes, uint64_t size, int width, int height) {
  const uint64_t content = core::hash64({static_cast<const char*>(bytes), size});
  return core::hash64(core::format("{} {} {}", width, height, content));
}

bool channels_agree(const uint8_t* rgb, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (rgb[3 * i] != rgb[3 * i + 1] || rgb[3 * i] != rgb[3 * i + 2]) return false;
  }
  return true;
}

/// Whether elements of `bytes_each` repeat the first one.
bool is_one_value(const uint8_t* bytes, uint64_t size, size_t bytes_each) {
  return size <= bytes_each || std::memcmp(bytes, bytes + bytes_each, size - bytes_each) == 0;
}

/// float16: an exponent of ones; float32: as std::isfinite().
bool has_non_finite(const SampleContent& content) {
  if (content.element == Element::float16) {
    for (uint64_t i = 0; i + 2 <= content.size; i += 2) {
      if ((content.bytes[i + 1] & 0x7C) == 0x7C) return true;  // little-endian
    }
    return false;
  }
  for (uint64_t i = 0; i + 4 <= content.size; i += 4) {
    float value = 0;
    std::memcpy(&value, content.bytes + i, sizeof(value));
    if (!std::isfinite(value)) return true;
  }
  return false;
}

/// "gray, 8 bits", "float32"
std::string kind_name(const SampleFacts& facts) {
  switch (facts.kind) {
    case SampleKind::gray: return core::format("gray, {} bits", facts.bits);
    case SampleKind::rgb: return core::format("RGB, {} bits", facts.bits);
    case SampleKind::rgba: return core::format("RGB with alpha, {} bits", facts.bits);
    case SampleKind::float16: return "float16";
    case SampleKind::float32: return "float32";
  }
  return "";
}

std::string SampleExaminer::examine(int64_t index, SampleFacts& facts) {
  facts = SampleFacts();
  gray_.clear();
  SampleContent content;
  std::string reason;
  try {
    const FrameSource* const videos = source_.frames();
    if (videos == nullptr) {
      reason = source_.read(index, encoded_, content);
      if (reason.empty()) reason = examine_image(content, facts);
    } else {
      const int64_t frames = videos->frame_count(index);
      std::string digests;
      for (int64_t step = 1; reason.empty() && step <= frames; ++step) {
        const int64_t frame = (frames / 2 + step) % frames;  // the one in the middle last
        reason = videos->read_frame(index, frame, encoded_, content);
        if (reason.empty()) reason = examine_image(content, facts);
        if (!reason.empty()) reason = core::printable(videos->frame_name(index, frame)) + ": " + reason;
        digests += core::format("{} ", facts.digest);
      }
      facts.digest = core::hash64(digests);
    }
  } catch (const core::Error& error) {
    if (error.kind() != core::ErrorKind::data) throw;
    reason = error.what();  // took too long to decode
  }
  facts.readable = reason.empty();
  return reason;
}

std::string SampleExaminer::examine_image(const SampleContent& content, SampleFacts& facts) {
  if (content.element != Element::uint8) {
    facts.kind = content.element == Element::float16 ? SampleKind::float16 : SampleKind::float32;
    facts.width = content.width;
    facts.height = content.height;
    facts.digest = digest_of(content.bytes, content.size, content.width, content.height);
    facts.one_value = is_one_value(content.bytes, content.size, static_cast<size_t>(bytes_of(content.element)));
    facts.not_finite = has_non_finite(content);
    return "";
  }
  if (content.is_pixels()) {
    facts.kind = content.channels == 1 ? SampleKind::gray : SampleKind::rgb;
    examine_pixels(content.bytes, content.width, content.height, content.channels, facts);
    return "";
  }
  ImageHeader header;
  if (std::string reason = read_header(content.bytes, content.size, limits_, header); !reason.empty()) return reason;
  const int channels = header.channels == 1 ? 1 : 3;
  if (std::string reason = decode_image(content.bytes, content.size, channels, limits_, image_); !reason.empty()) {
    return reason;
  }
  facts.kind = header.channels == 1 ? SampleKind::gray : header.channels == 4 ? SampleKind::rgba : SampleKind::rgb;
  facts.bits = static_cast<uint8_t>(header.bits);
  examine_pixels(image_.pixels.data(), image_.width, image_.height, channels, facts);
  give_back(image_.pixels, image_.pixels.size());
  return "";
}

void SampleExaminer::examine_pixels(const uint8_t* pixels, int width, int height, int channels, SampleFacts& facts) {
  const int64_t count = int64_t{width} * height;
  facts.width = width;
  facts.height = height;
  facts.one_value = is_one_value(pixels, static_cast<uint64_t>(count * channels), static_cast<size_t>(channels));
  facts.gray_as_rgb = channels == 3 && channels_agree(pixels, count);
  convert_channels(pixels, count, channels, 1, gray_);
  const bool as_gray = channels == 1 || facts.gray_as_rgb;
  facts.digest =
      digest_of(as_gray ? gray_.data() : pixels, static_cast<uint64_t>(count * (as_gray ? 1 : 3)), width, height);
}

}  // namespace

SampleGroups::SampleGroups(int64_t samples) : parent_(static_cast<size_t>(samples)) {
  std::iota(parent_.begin(), parent_.end(), int64_t{0});
}

int64_t SampleGroups::root_of(int64_t sample) {
  while (parent_[static_cast<size_t>(sample)] != sample) {
    int64_t& above = parent_[static_cast<size_t>(sample)];
    above = parent_[static_cast<size_t>(above)];
    sample = above;
  }
  return sample;
}

void SampleGroups::join(int64_t a, int64_t b) {
  const int64_t first = root_of(a), second = root_of(b);
  parent_[static_cast<size_t>(std::max(first, second))] = std::min(first, second);
}

std::vector<std::vector<int64_t>> SampleGroups::of_several() {
  std::vector<std::vector<int64_t>> groups;
  std::vector<int64_t> group_of(parent_.size(), -1);  // of a root
  for (int64_t i = 0; i < static_cast<int64_t>(parent_.size()); ++i) {
    const int64_t root = root_of(i);
    if (root == i) continue;
    int64_t& group = group_of[static_cast<size_t>(root)];
    if (group < 0) {
      group = static_cast<int64_t>(groups.size());
      groups.push_back({root});
    }
    groups[static_cast<size_t>(group)].push_back(i);
  }
  std::sort(groups.begin(), groups.end());
  return groups;
}

namespace {

constexpr int64_t kSamplesAtATime = 64;  // samples that a thread takes at a time

/// All samples of all splits in one row.
class Samples {
 public:
  explicit Samples(const std::vector<SplitToAudit>& splits) : splits_(splits), ends_(splits.size()) {
    int64_t end = 0;
    for (size_t i = 0; i < splits.size(); ++i) ends_[i] = end += splits[i].source->size();
  }
  int64_t size() const { return ends_.empty() ? 0 : ends_.back(); }
  SampleAt at(int64_t position) const {
    const auto split = std::upper_bound(ends_.begin(), ends_.end(), position) - ends_.begin();
    return {split, position - (split == 0 ? 0 : ends_[static_cast<size_t>(split) - 1])};
  }
  const Source& source_of(const SampleAt& at) const { return *splits_[static_cast<size_t>(at.split)].source; }

 private:
  const std::vector<SplitToAudit>& splits_;
  std::vector<int64_t> ends_;
};

/// Whether two samples teach different things.
bool labels_differ(const Samples& samples, const SampleAt& a, const SampleAt& b) {
  const Source &of_a = samples.source_of(a), &of_b = samples.source_of(b);
  if (of_a.num_targets() == 0) return of_a.label(a.index) != of_b.label(b.index);
  std::vector<float> first(static_cast<size_t>(of_a.num_targets())), second(first.size());
  of_a.targets(a.index, first.data());
  of_b.targets(b.index, second.data());
  return first != second;
}

class Scan {
 public:
  Scan(const Samples& samples, const AuditSettings& settings, const AuditProgress& on_progress)
      : samples_(samples),
        settings_(settings),
        on_progress_(on_progress),
        facts_(static_cast<size_t>(samples.size())),
        pictures_(settings.near ? facts_.size() : 0) {}

  void run() {
    const int64_t total = samples_.size();
    core::for_each_index((total + kSamplesAtATime - 1) / kSamplesAtATime, settings_.threads, [&] {
      return [&, scratch = ResampleScratch()](int64_t block) mutable {
        const int64_t end = std::min(total, (block + 1) * kSamplesAtATime);
        for (int64_t position = block * kSamplesAtATime; position < end; ++position) examine(position, scratch);
        const std::lock_guard<std::mutex> lock(mutex_);
        done_ += end - block * kSamplesAtATime;
        if (on_progress_) on_progress_(done_, total);
      };
    });
    std::sort(bad_.begin(), bad_.end(), [](const CorruptSample& a, const CorruptSample& b) { return a.at < b.at; });
  }
  const std::vector<SampleFacts>& facts() const { return facts_; }
  /// [samples]; empty where near duplicates are not wanted
  const std::vector<Picture>& pictures() const { return pictures_; }
  std::vector<CorruptSample> bad() { return std::move(bad_); }

 private:
  void examine(int64_t position, ResampleScratch& scratch) {
    const SampleAt at = samples_.at(position);
    SampleExaminer examiner(samples_.source_of(at), settings_.limits);
    SampleFacts& facts = facts_[static_cast<size_t>(position)];
    std::string reason = examiner.examine(at.index, facts);
    if (reason.empty() && facts.not_finite) reason = "holds numbers that are not finite";
    if (reason.empty() && !facts.one_value && !pictures_.empty() && examiner.gray() != nullptr) {
      pictures_[static_cast<size_t>(position)] = {thumbnail_of(examiner.gray(), facts.width, facts.height, scratch),
                                                  std::min(facts.width, facts.height)};
    }
    if (reason.empty()) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    bad_.push_back({at, std::move(reason)});
  }

  const Samples& samples_;
  const AuditSettings& settings_;
  const AuditProgress& on_progress_;
  std::vector<SampleFacts> facts_;  ///< [samples]; each written by one thread
  std::vector<Picture> pictures_;   ///< the same
  std::mutex mutex_;                ///< guards bad_ and done_
  std::vector<CorruptSample> bad_;
  int64_t done_ = 0;
};

std::vector<Tally> most_frequent_first(const std::map<std::string, int64_t>& counts) {
  std::vector<Tally> tallies;
  for (const auto& [what, samples] : counts) tallies.push_back({what, samples});
  std::stable_sort(tallies.begin(), tallies.end(),
                   [](const Tally& a, const Tally& b) { return a.samples > b.samples; });
  return tallies;
}

void count(const Samples& samples, const std::vector<SampleFacts>& facts, AuditFindings& findings) {
  std::map<std::pair<int32_t, int32_t>, int64_t> sizes;
  std::map<std::string, int64_t> kinds, named_sizes;
  for (int64_t position = 0; position < samples.size(); ++position) {
    const SampleFacts& of = facts[static_cast<size_t>(position)];
    if (!of.readable) continue;
    ++sizes[{of.width, of.height}];
    ++kinds[kind_name(of) + std::string(of.gray_as_rgb ? " (but gray)" : "")];
    if (of.one_value) findings.one_value.push_back(samples.at(position));
  }
  for (const auto& [size, images] : sizes) named_sizes[core::format("{} x {}", size.first, size.second)] = images;
  findings.sizes = most_frequent_first(named_sizes);
  findings.kinds = most_frequent_first(kinds);
}

SplitFindings count_classes(const SplitToAudit& split) {
  SplitFindings findings;
  findings.name = split.name;
  findings.samples = split.source->size();
  if (split.source->num_targets() > 0) return findings;
  findings.class_samples.assign(static_cast<size_t>(split.source->num_classes()), 0);
  for (int64_t i = 0; i < findings.samples; ++i) ++findings.class_samples[static_cast<size_t>(split.source->label(i))];
  return findings;
}

DuplicateGroup described(const Samples& samples, const std::vector<SampleFacts>& facts,
                         const std::vector<int64_t>& positions) {
  DuplicateGroup group;
  const uint64_t first = facts[static_cast<size_t>(positions.front())].digest;
  for (const int64_t position : positions) {
    group.members.push_back(samples.at(position));
    group.exact = group.exact && facts[static_cast<size_t>(position)].digest == first;
  }
  for (const SampleAt& member : group.members) {
    group.across_splits = group.across_splits || member.split != group.members.front().split;
    group.labels_differ = group.labels_differ || labels_differ(samples, group.members.front(), member);
  }
  return group;
}

/// Samples with equal digests. Those of one colour are left out: they are a finding of their own.
void find_equal(const std::vector<SampleFacts>& facts, SampleGroups& groups) {
  std::vector<std::pair<uint64_t, int64_t>> digests;
  for (size_t i = 0; i < facts.size(); ++i) {
    if (facts[i].readable && !facts[i].one_value) digests.emplace_back(facts[i].digest, static_cast<int64_t>(i));
  }
  std::sort(digests.begin(), digests.end());
  for (size_t i = 1; i < digests.size(); ++i) {
    if (digests[i].first == digests[i - 1].first) groups.join(digests[i - 1].second, digests[i].second);
  }
}

/// Pictures without the repeated ones: of equal samples the first stands for all.
std::vector<Picture> one_of_each(const Scan& scan, SampleGroups& groups) {
  std::vector<Picture> pictures = scan.pictures();
  if (pictures.empty()) return pictures;
  for (const std::vector<int64_t>& equal : groups.of_several()) {
    for (size_t i = 1; i < equal.size(); ++i) pictures[static_cast<size_t>(equal[i])].shorter_side = 0;
  }
  return pictures;
}

}  // namespace

std::vector<SampleAt> DuplicateGroup::examples(size_t count) const {
  std::vector<SampleAt> first, others;
  for (const SampleAt& member : members) {
    (first.empty() || first.back().split != member.split ? first : others).push_back(member);
  }
  first.insert(first.end(), others.begin(), others.end());
  first.resize(std::min(count, first.size()));
  return first;
}

AuditFindings audit(const std::vector<SplitToAudit>& splits, const AuditSettings& settings,
                    const AuditProgress& on_progress) {
  const Samples samples(splits);
  AuditFindings findings;
  findings.learned_names = splits.front().source->learned_names();
  findings.is_numeric_task = splits.front().source->num_targets() > 0;
  for (const SplitToAudit& split : splits) findings.splits.push_back(count_classes(split));

  Scan scan(samples, settings, on_progress);
  scan.run();
  findings.bad = scan.bad();
  count(samples, scan.facts(), findings);

  SampleGroups groups(samples.size());
  find_equal(scan.facts(), groups);
  findings.near_compared = settings.near;
  for (const NearPair& pair : near_pairs(one_of_each(scan, groups), settings.threads)) groups.join(pair.a, pair.b);
  for (const std::vector<int64_t>& positions : groups.of_several()) {
    findings.groups.push_back(described(samples, scan.facts(), positions));
  }
  std::stable_sort(
      findings.groups.begin(), findings.groups.end(), [](const DuplicateGroup& a, const DuplicateGroup& b) {
        return std::make_pair(a.across_splits, a.labels_differ) > std::make_pair(b.across_splits, b.labels_differ);
      });
  return findings;
}

}  // namespace stoker::data
