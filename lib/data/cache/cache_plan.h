// SPDX-License-Identifier: Apache-2.0
// Which samples a cache holds, in which form and where, decided before the first is cached: a function of
// sizes and budget alone, the same for any number of workers. Holds no sample itself.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/options.h"
#include "data/image/decode.h"
#include "data/source.h"

namespace stoker::data {

/// Settings of a cache.
struct CacheSettings {
  std::optional<config::CacheTier> tier;  ///< nothing: the fastest that holds every sample within the budget
  int64_t budget_bytes = 0;               ///< size limit of the cache with its bookkeeping
  int channels = 3;                       ///< channels of the decoded pixels: those of the run
  DecodeLimits limits;
  int scan_threads = 1;  ///< that look at headers
};

/// Where there are videos, samples are their frames. Samples [0, pixel_samples) are held as pixels, the next
/// byte_samples as they are stored, and the rest is read from the source each time.
struct CachePlan {
  config::CacheTier tier = config::CacheTier::none;
  std::string reason;  ///< why it is this tier, in words
  int64_t pixel_samples = 0, byte_samples = 0;
  std::vector<uint64_t> offsets;  ///< [held() + 1] bytes from the start of the cache's memory; equal: no space

  int64_t samples = 0;  ///< that there are
  int64_t held() const { return pixel_samples + byte_samples; }
  int64_t memory_bytes() const { return offsets.empty() ? 0 : static_cast<int64_t>(offsets.back()); }
  /// The bytes that count against the budget.
  int64_t planned_bytes() const;
};

/// Without a tier requested: pixels when all samples fit decoded, else their stored bytes when all fit, else
/// none. A tier that was requested holds the first samples that fit; pixels that do not fit are held as bytes
/// as far as these fit. Sources of pixels are not cached; of videos every frame is, which may be shown. Reads headers
/// only: all of them where pixels may fit, else at most 256. Throws what Source::read throws, and core::StopRequested.
CachePlan plan_cache(const std::shared_ptr<const Source>& source, const CacheSettings& settings);

// The frames of a source of videos as samples of their own, and back again: what works on images, such as a
// cache, then works on frames.

/// All frames of all samples of `videos`, one after another.
std::shared_ptr<const Source> make_frame_list(std::shared_ptr<const Source> videos);

/// `videos`, of which frames are read from `frames`: its frame list, or one in front of it.
std::shared_ptr<const Source> with_frames_from(std::shared_ptr<const Source> videos,
                                               std::shared_ptr<const Source> frames);

}  // namespace stoker::data
