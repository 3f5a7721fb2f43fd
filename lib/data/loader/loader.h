// SPDX-License-Identifier: Apache-2.0
// The loader: worker threads turn samples into rows of batch buffers, a fixed ring of buffers is handed over in
// order. Bit-identical for any number of workers and any prefetch. Independent of models and devices.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/loader/loader_stats.h"
#include "data/source.h"
#include "data/transform/transform.h"

namespace stoker::data {

// The recipe of a sample whose pixels are on the device already: which one, where its window begins, mirrored or
// not.

/// How images lie where they stay: all of one size, within a border of zeros.
struct StoredImages {
  int height = 0, width = 0;  ///< pixels, without the border
  int border = 0;             ///< pixels on each side
};

/// A row of a batch instead of pixels; the window has the size of the plan's shape.
struct SampleRecipe {
  int32_t sample = 0;
  int32_t top = 0, left = 0;  ///< position of the window in the stored image, its border included
  int32_t flip = 0;           ///< 1: mirrored
};

/// The shape of a row that holds a recipe: 4 numbers, as bytes.
constexpr SampleShape recipe_shape() { return {0, 1, sizeof(SampleRecipe), 1, Element::uint8}; }

// In which order an epoch visits the samples: a pure function of its arguments, hence the same for any number
// of workers and after any resume.

/// A permutation of all samples. `run_ends`: where the runs of samples end that lie one after another on the
/// storage (StoredSamples::run_ends()); the last is the number of samples.
///   window 0: every order is equally likely.
///   window N: runs are visited in random order, and the samples are shuffled among N neighbours at a time,
///   so that reads stay close together: for storage that punishes seeks.
std::vector<uint32_t> shuffled_order(const std::vector<int64_t>& run_ends, int64_t window, uint64_t seed,
                                     uint64_t epoch);

// The order of an epoch that shows every class equally often: a pure function of (seed, epoch).

/// The samples of each class, in the order of the source; classes without samples are left out.
std::vector<std::vector<uint32_t>> samples_by_class(const Source& source);

/// An epoch of as many samples as the source has, in which every class that has any is seen equally often (to
/// within one). A class's samples come in rounds: each round shows all of them once, in an order of its own,
/// before any comes again; a class with more samples than its share shows a part of them that changes from
/// epoch to epoch.
struct BalancedOrder {
  std::vector<uint32_t> samples;
  /// Which round of its class each stands in, from 0: with the sample it is unique within the epoch.
  std::vector<uint32_t> rounds;
};
BalancedOrder class_balanced_order(const std::vector<std::vector<uint32_t>>& classes, uint64_t seed, uint64_t epoch);

struct LoaderSettings {
  int64_t batch_size = 1;       ///< images
  int64_t num_workers = 0;      ///< threads; 0: the calling thread decodes
  int64_t prefetch_factor = 4;  ///< batches ahead of the one in use
  bool pin_memory = false;      ///< page-locked buffers, for copies that overlap
  bool shuffle = false;
  int64_t shuffle_buffer = 0;   ///< images that are shuffled among each other; 0: all
  bool class_balanced = false;  ///< with shuffle: every class equally often
  bool drop_last = false;
  /// The batches of an epoch here, and their order; none: of all, in order. Where several processes train
  /// together, each reads its share.
  std::optional<std::vector<int64_t>> own_batches;
  uint64_t seed = 0;
  config::OnBadImage on_bad_image = config::OnBadImage::fail;
  int64_t max_bad = 0;  ///< images
  DecodeLimits limits;
  /// Set: rows hold a SampleRecipe each instead of pixels, which lie on the device so. Nothing is read.
  std::optional<StoredImages> stored;
};

/// One batch in host memory. The tensors are views of a buffer: valid until the batch is released.
struct HostBatch {
  torch::Tensor images;          ///< uint8, float16 or float32 [n, H, W, C], clips [n, T, H, W, C], contiguous; pinned
                                 ///< when requested. Or uint8 [n, 1, 16, 1]: recipes
  torch::Tensor labels;          ///< int64 [n]; -1 where there are none
  torch::Tensor targets;         ///< float32 [n, num_targets of the source]
  std::vector<int64_t> samples;  ///< [n] source indices, for predictions and error reports
  int64_t planned_images = 0;    ///< n + skipped bad images
  int64_t buffer = -1;           ///< internal: which buffer of the ring
};

/// A sample that could not be used.
struct BadSample {
  int64_t sample = 0;
  std::string name;
  std::string reason;
};

/// The steps after an image that cannot be decoded.
constexpr const char* kBadImageHint =
    "repair or remove the file, or skip such images: --on-bad-image skip; a damaged JPEG as its decoder repairs it: "
    "--on-bad-image repair";

/// One consumer thread. The destructor joins the workers. Workers persist over epochs.
class Loader {
 public:
  Loader(std::shared_ptr<const Source> source, TransformPlan plan, LoaderSettings settings);
  ~Loader();
  Loader& operator=(Loader&&) = delete;  // not copied, not moved

  int64_t batches_per_epoch() const;             ///< number of all batches, whatever this loader's own are
  int64_t images_per_epoch() const;              ///< all, less a dropped last batch
  int64_t images_in_batch(int64_t batch) const;  ///< planned: full, or the short last one

  /// Starts epoch `epoch` at batch `first_batch` of its own, dropping what was under way. No sample before it is read.
  void begin_epoch(int64_t epoch, int64_t first_batch = 0);
  /// The next batch in order; false after the last. Returned batches must be released in order; at most
  /// max(2, prefetch_factor) may be held at once. Bad images throw Error{data} with path and reason, or, when
  /// skipped, are left out of the batch (later rows move up; a batch of bad images alone has no rows) and
  /// recorded. After an error the same batch can be requested again.
  /// With `may_stop` it polls stop requests while waiting and throws core::StopRequested; without, it waits
  /// on: an optimizer update that has consumed its first batch must get the others.
  bool next(HostBatch& batch, bool may_stop = true);
  /// True when next() would not wait. Never true without workers.
  bool is_ready() const;
  /// Gives the buffer back for refilling.
  void release(const HostBatch& batch);

  LoaderStats stats() const;
  /// Seconds that next() has waited so far, without the rest of stats().
  double waited_seconds() const;
  SampleTimes sample_times() const;
  /// All bad samples met so far, by sample index. Restoring them skips the decode, not the decision.
  std::vector<BadSample> bad_samples() const;
  void restore_bad_samples(const std::vector<BadSample>& known);
  /// Bad images of other loaders, each with its share of the batches: counts as if this one had. Throws Error{data}
  /// when that makes more than max_bad.
  void add_bad_samples(const std::vector<BadSample>& of_others);
  int64_t bad_count() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker::data
