// SPDX-License-Identifier: Apache-2.0
// Where a divergence or a spike of a run began, from its updates as they were watched. Computes nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "commands/inspect/watched_update.h"

namespace stoker::train {

/// The cause.
struct Blame {
  enum class Kind { nothing, spike, divergence };
  Kind kind = Kind::nothing;
  WatchedUpdate began;                ///< the update in which it began
  int64_t not_finite_at = 0;          ///< divergence: the update whose numbers are the first that are not finite
  std::string cause;                  ///< in words
  std::vector<SampleRecord> samples;  ///< that stand out in it, the worst first; empty: none does
  std::string layer;                  ///< in which it shows first; empty: unknown
  bool by_skipping = false;           ///< the run ended since float16 gradients overflowed in every update
};

/// From updates in order. A spike is a loss or a gradient norm far above the median of the updates before it. What a
/// loss scaler skipped is none, but for a run that ends_by_skipping() with `limits`.
Blame find_fault(const std::vector<WatchedUpdate>& watched, const engine::SkipLimits& limits = {});

// Updates that the loss scaler of float16 left out: what they mean for a run. Computes nothing.

/// The first of the skipped updates at the end of `updates`, as an index; updates.size(): the last was not skipped.
size_t first_trailing_skip(const std::vector<WatchedUpdate>& updates);

/// Whether a smaller loss scale could have helped the last update, which was skipped.
bool is_scale_too_high(const std::vector<WatchedUpdate>& updates);

/// Why the updates from `first` to the end were all skipped, in words.
std::string cause_of_skips(const std::vector<WatchedUpdate>& updates, size_t first);
/// The advice for it. `init_scale`: of the run.
std::string advice_about_skips(const std::vector<WatchedUpdate>& updates, double init_scale);

/// The last layer whose gradient is not finite: gradients are computed from there to the first.
std::string overflowing_layer(const WatchedUpdate& update);

/// With a finite gradient norm for what was skipped: that of the update before it. So it stands out nowhere.
std::vector<WatchedUpdate> with_norms_of_skips_filled(std::vector<WatchedUpdate> updates);

// Where the numbers of a series stand out from those before them. Depends on numbers only.

/// The median of finite `values`; 0 where there are none.
double median_of(std::vector<double> values);

/// values[i] as a multiple of what is usual, where it is more than `factor` times that and far outside of the usual
/// spread; else 0. Usual is the median of up to 50 numbers before it. Where fewer than 4 are, it must stand out from
/// those after it as well, so that the high start of a run is none, or 10 times as far where there are hardly any after
/// it. What is not finite is left out.
double spike(const std::vector<double>& values, size_t i, double factor);

/// Numbers that stand out, with at most two in between that do not.
struct Episode {
  size_t begin = 0, end = 0;  ///< the first and the last
  size_t peak = 0;            ///< the largest, or the first that is not finite
  double most = 0;            ///< the peak as a multiple of what was usual before `begin`; may be infinite
};
/// In order. What was usual before an episode is what all of it is compared with. A number that is not finite stands
/// out.
std::vector<Episode> episodes_of(const std::vector<double>& values, double factor);

}  // namespace stoker::train
