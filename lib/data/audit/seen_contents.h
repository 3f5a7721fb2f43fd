// SPDX-License-Identifier: Apache-2.0
// Which contents a source has given, as digests. A run compares them at the end of its first epoch: is the same image
// in two splits? Costs well under a microsecond a read: of a long content only some pages are looked at. The content
// of a video is its frames that were read: two videos count as the same when these are.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "data/source.h"

namespace stoker::data {

/// Digests by sample. From any thread.
class SeenContents {
 public:
  explicit SeenContents(int64_t samples) : digests_(static_cast<size_t>(samples)) {}

  void add(int64_t sample, const SampleContent& content);
  /// One of the `frames` that a video has.
  void add_frame(int64_t sample, int64_t frame, int64_t frames, const SampleContent& content);
  /// The contents that another process has seen of the same samples, from its seen().
  void add_seen(int64_t sample, uint64_t digest);
  /// Samples with their digests, ascending.
  std::vector<std::pair<int64_t, uint64_t>> seen() const;
  /// From now on nothing is added.
  void stop() { stopped_.store(true, std::memory_order_relaxed); }
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }

  /// Samples whose content was seen among `others`, too, ascending, each with the first of those.
  std::vector<std::pair<int64_t, int64_t>> found_in(const SeenContents& others) const;

 private:
  std::vector<std::atomic<uint64_t>> digests_;  ///< 0: not seen
  std::atomic<bool> stopped_{false};
};

/// `source`, of which every sample or frame that is read is added to `seen`.
std::shared_ptr<const Source> make_watched_source(std::shared_ptr<const Source> source,
                                                  std::shared_ptr<SeenContents> seen);

}  // namespace stoker::data
