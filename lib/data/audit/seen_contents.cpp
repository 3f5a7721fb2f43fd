// SPDX-License-Identifier: Apache-2.0
#include "data/audit/seen_contents.h"

#include <algorithm>
#include <array>

#include "core/hash.h"
#include "data/source.h"

namespace stoker::data {
namespace {

constexpr uint64_t kSampledBytes = 4096;

uint64_t hash_of(const uint8_t* bytes, uint64_t count) {
  return core::hash64({reinterpret_cast<const char*>(bytes), count});
}

/// The digest of all of a short content; for a long one of its size and the pages at its begin, in its middle and at
/// its end.
uint64_t digest_of_pages(const SampleContent& content) {
  const uint64_t size = content.size;
  if (size <= 3 * kSampledBytes) return hash_of(content.bytes, size);
  const std::array<uint64_t, 4> parts = {size, hash_of(content.bytes, kSampledBytes),
                                         hash_of(content.bytes + size / 2, kSampledBytes),
                                         hash_of(content.bytes + size - kSampledBytes, kSampledBytes)};
  return hash_of(reinterpret_cast<const uint8_t*>(parts.data()), sizeof(parts));
}

class WatchedSource : public ForwardingSource {
 public:
  WatchedSource(std::shared_ptr<const Source> source, std::shared_ptr<SeenContents> seen)
      : ForwardingSource(std::move(source)), seen_(std::move(seen)) {}

  std::string read(int64_t index, std::vector<uint8_t>& buffer, SampleContent& content) const override {
    std::string reason = ForwardingSource::read(index, buffer, content);
    if (reason.empty()) seen_->add(index, content);
    return reason;
  }

 protected:
  std::string read_frame(int64_t index, int64_t frame, std::vector<uint8_t>& buffer,
                         SampleContent& content) const override {
    std::string reason = ForwardingSource::read_frame(index, frame, buffer, content);
    if (reason.empty()) seen_->add_frame(index, frame, frame_count(index), content);
    return reason;
  }

 private:
  const std::shared_ptr<SeenContents> seen_;
};

}  // namespace

void SeenContents::add(int64_t sample, const SampleContent& content) {
  if (!stopped()) add_seen(sample, digest_of_pages(content));
}

void SeenContents::add_frame(int64_t sample, int64_t frame, int64_t frames, const SampleContent& content) {
  if (stopped()) return;
  const std::array<uint64_t, 3> parts = {static_cast<uint64_t>(frame), static_cast<uint64_t>(frames),
                                         digest_of_pages(content)};
  add_seen(sample, hash_of(reinterpret_cast<const uint8_t*>(parts.data()), sizeof(parts)));
}

/// The smallest digest is kept: that of a set of frames, in whatever order and however often they are read.
void SeenContents::add_seen(int64_t sample, uint64_t digest) {
  std::atomic<uint64_t>& kept = digests_[static_cast<size_t>(sample)];
  digest = std::max<uint64_t>(1, digest);
  for (uint64_t before = kept.load(std::memory_order_relaxed);
       (before == 0 || digest < before) && !kept.compare_exchange_weak(before, digest, std::memory_order_relaxed);) {
  }
}

std::vector<std::pair<int64_t, uint64_t>> SeenContents::seen() const {
  std::vector<std::pair<int64_t, uint64_t>> seen;
  for (size_t i = 0; i < digests_.size(); ++i) {
    const uint64_t digest = digests_[i].load(std::memory_order_relaxed);
    if (digest != 0) seen.emplace_back(static_cast<int64_t>(i), digest);
  }
  return seen;
}

std::vector<std::pair<int64_t, int64_t>> SeenContents::found_in(const SeenContents& others) const {
  std::vector<std::pair<uint64_t, int64_t>> sorted;
  for (const auto& [sample, digest] : others.seen()) sorted.emplace_back(digest, sample);
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::pair<int64_t, int64_t>> found;
  for (const auto& [sample, digest] : seen()) {
    const auto other = std::lower_bound(sorted.begin(), sorted.end(), std::make_pair(digest, int64_t{0}));
    if (other != sorted.end() && other->first == digest) found.emplace_back(sample, other->second);
  }
  return found;
}

std::shared_ptr<const Source> make_watched_source(std::shared_ptr<const Source> source,
                                                  std::shared_ptr<SeenContents> seen) {
  return std::make_shared<WatchedSource>(std::move(source), std::move(seen));
}

}  // namespace stoker::data
