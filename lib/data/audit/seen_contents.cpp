// SPDX-License-Identifier: Apache-2.0
#include "data/audit/seen_contents.h"

#include <algorithm>
#include <array>

#include "core/hash.h"
#include "data/forwarding_source.h"

namespace stoker::data {
namespace {

constexpr uint64_t kPage = 4096;

uint64_t hash_of(const uint8_t* bytes, uint64_t count) {
  return core::hash64({reinterpret_cast<const char*>(bytes), count});
}

/// Of a short content all of it; of a long one its size and the pages at its begin, in its middle and at its end.
uint64_t digest_of_pages(const SampleContent& content) {
  const uint64_t size = content.size;
  if (size <= 3 * kPage) return hash_of(content.bytes, size);
  const std::array<uint64_t, 4> parts = {size, hash_of(content.bytes, kPage), hash_of(content.bytes + size / 2, kPage),
                                         hash_of(content.bytes + size - kPage, kPage)};
  return hash_of(reinterpret_cast<const uint8_t*>(parts.data()), sizeof(parts));
}

class WatchedSource : public ForwardingSource {
 public:
  WatchedSource(std::shared_ptr<const Source> source, std::shared_ptr<SeenContents> seen)
      : ForwardingSource(std::move(source)), seen_(std::move(seen)) {}

  std::string read(int64_t index, std::vector<uint8_t>& buffer, SampleContent& content) const override {
    std::string reason = ForwardingSource::read(index, buffer, content);
    if (reason.empty() && !seen_->stopped()) seen_->add(index, content);
    return reason;
  }

 private:
  const std::shared_ptr<SeenContents> seen_;
};

}  // namespace

void SeenContents::add(int64_t sample, const SampleContent& content) {
  if (stopped()) return;
  const uint64_t digest = digest_of_pages(content);
  digests_[static_cast<size_t>(sample)].store(digest == 0 ? 1 : digest, std::memory_order_relaxed);
}

std::vector<std::pair<int64_t, int64_t>> SeenContents::found_in(const SeenContents& others) const {
  std::vector<std::pair<uint64_t, int64_t>> sorted;
  for (size_t i = 0; i < others.digests_.size(); ++i) {
    const uint64_t digest = others.digests_[i].load(std::memory_order_relaxed);
    if (digest != 0) sorted.emplace_back(digest, static_cast<int64_t>(i));
  }
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::pair<int64_t, int64_t>> found;
  for (size_t i = 0; i < digests_.size(); ++i) {
    const uint64_t digest = digests_[i].load(std::memory_order_relaxed);
    const auto other = std::lower_bound(sorted.begin(), sorted.end(), std::make_pair(digest, int64_t{0}));
    if (digest == 0 || other == sorted.end() || other->first != digest) continue;
    found.emplace_back(static_cast<int64_t>(i), other->second);
  }
  return found;
}

std::shared_ptr<const Source> make_watched_source(std::shared_ptr<const Source> source,
                                                  std::shared_ptr<SeenContents> seen) {
  return std::make_shared<WatchedSource>(std::move(source), std::move(seen));
}

}  // namespace stoker::data
