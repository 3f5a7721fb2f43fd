// SPDX-License-Identifier: Apache-2.0
// Which contents a source has given, as digests: what tells a run, at the end of its first epoch, that the same image
// is in two splits. Costs well under a microsecond a read: of a long content only some pages are looked at.
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
  /// From now on nothing is added.
  void stop() { stopped_.store(true, std::memory_order_relaxed); }
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }

  /// Samples whose content was seen among `others`, too, ascending, each with the first of those.
  std::vector<std::pair<int64_t, int64_t>> found_in(const SeenContents& others) const;

 private:
  std::vector<std::atomic<uint64_t>> digests_;  ///< 0: not seen
  std::atomic<bool> stopped_{false};
};

/// `source`, of which every read() is added to `seen`. Not for videos: which of their frames are read changes.
std::shared_ptr<const Source> make_watched_source(std::shared_ptr<const Source> source,
                                                  std::shared_ptr<SeenContents> seen);

}  // namespace stoker::data
