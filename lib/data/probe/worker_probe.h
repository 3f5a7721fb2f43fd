// SPDX-License-Identifier: Apache-2.0
// How fast samples can be made with a number of threads, measured on the real data in about a second, and how
// many are worth having.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/time/clock.h"
#include "data/image/decode.h"
#include "data/source.h"
#include "data/transform/transform.h"

namespace stoker::data {

struct WorkerProbeSettings {
  int64_t max_workers = 1;  ///< threads: no more are tried
  double seconds = 1.2;     ///< duration of the measurement, in all
  uint64_t seed = 0;        ///< seed of the crops
  DecodeLimits limits;
  const core::Clock* clock = &core::machine_clock();  ///< outlives the measuring
};

struct WorkerRate {
  int64_t workers = 0;
  double images_per_second = 0;
};

struct WorkerProbe {
  std::vector<WorkerRate> rates;  ///< by number of workers, rising; empty: not measured
  std::string skipped;            ///< why not, in words
};

/// Reads and transforms samples spread evenly over the source with 1, 2, 4, ... and max_workers threads, each
/// count twice, and keeps the better. Not measured: sources of pixels, fewer than 200 samples, max_workers 1,
/// and data that cannot be read, which training will report. Throws core::StopRequested.
WorkerProbe probe_workers(const Source& source, const TransformPlan& plan, const WorkerProbeSettings& settings);

/// The numbers of threads that are tried: 1, 2, 4, ... and `max_workers`, at least 1.
std::vector<int64_t> worker_counts(int64_t max_workers);

/// Calls measure(workers, seconds of this measurement), which returns a rate, for all counts upwards and then
/// downwards, and keeps the better rate of each count: what changes over time (the page cache fills, clocks settle)
/// favours no count. The measurements share `seconds` equally.
std::vector<double> better_of_two(const std::vector<int64_t>& counts, double seconds,
                                  const std::function<double(int64_t workers, double seconds)>& measure);

/// The smallest number of workers whose rate is within 1 % of the best; 0 without rates.
int64_t best_workers(const std::vector<WorkerRate>& rates);

/// "1,020 images/s with 1, 1,930 with 2".
std::string rates_text(const std::vector<WorkerRate>& rates);

// The reference of a loader: decoding the whole of the same files, one after another, on one thread,
// with libjpeg as it is.

/// Encoded files in memory. One thread.
class DecodeReference {
 public:
  /// Reads evenly spaced samples: at most `max_images`, and no more than `max_bytes` of them. Samples that
  /// cannot be read or decoded are left out.
  DecodeReference(const Source& source, int channels, const DecodeLimits& limits, int64_t max_images = 1000,
                  int64_t max_bytes = int64_t{256} << 20);

  /// 0 where the source has no encoded files.
  int64_t images() const { return static_cast<int64_t>(files_.size()); }
  /// Encoded bytes and pixels of all images.
  int64_t bytes() const { return bytes_; }
  double megapixels() const { return megapixels_; }
  /// Decodes all images once. Returns wall seconds. Throws core::StopRequested.
  double decode_all();

 private:
  std::string decode(const std::vector<uint8_t>& file);

  const int channels_;
  const DecodeLimits limits_;
  std::vector<std::vector<uint8_t>> files_;
  int64_t bytes_ = 0;
  double megapixels_ = 0;
  ImageBuffer image_;
};

}  // namespace stoker::data
