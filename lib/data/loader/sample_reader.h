// SPDX-License-Identifier: Apache-2.0
// The work of one worker on one sample: read, look at the header, draw the geometry, decode, write the row; for a
// clip so for each of its frames.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/image/decode.h"
#include "data/loader/loader.h"
#include "data/loader/loader_stats.h"
#include "data/source.h"
#include "data/transform/transform.h"

namespace stoker::data {

/// One per worker; holds the worker's buffers. The result is a pure function of (seed, epoch, sample, round).
class SampleReader {
 public:
  /// `stored`: how pixels lie on the device, in whose place recipes are written; none: pixels are.
  SampleReader(const Source& source, const TransformPlan& plan, const DecodeLimits& limits, uint64_t seed,
               const std::optional<StoredImages>& stored = {})
      : source_(source),
        videos_(source.frames()),
        excerpts_(source.excerpts()),
        plan_(plan),
        limits_(limits),
        seed_(seed),
        stored_(stored) {}

  /// Writes the plan's shape.bytes() or a recipe to `row`, and the source's num_targets() numbers, as they are after
  /// the transform, to `targets`. What is drawn for a clip holds for all its frames. Returns "" or why the image, or
  /// which frame, is bad; both are then undefined. `round` numbers the repeats of a sample within an epoch. Throws
  /// what Source::read throws. Adds to `times`.
  std::string read_into(int64_t sample, int64_t epoch, uint32_t round, uint8_t* row, float* targets, StageTimes& times);

 private:
  /// The draw for an image, and the size that it is for.
  struct Drawn {
    SampleGeometry geometry;
    int width = 0, height = 0;
  };

  /// All views of an image, one below the other.
  std::string read_views(int64_t sample, const SampleKey& key, uint8_t* row, StageTimes& times);
  /// An image as the storage has it; of something longer an excerpt, from anywhere in training.
  std::string read_content(int64_t sample, int64_t frame, const SampleKey& key, SampleContent& content);
  /// The part of an image that is shown: drawn, or that of its partner in the first view.
  SampleGeometry part_of(const RegionOfInterest& roi, int width, int height, core::Rng& rng);
  /// One image of a sample; returns the geometry that was drawn in `geometry`, as the next ones do.
  std::string read_image(int64_t sample, int64_t frame, const SampleKey& key, SampleGeometry& geometry, uint8_t* row,
                         StageTimes& times);
  void write_recipe(int64_t sample, const SampleKey& key, SampleGeometry& geometry, uint8_t* row) const;
  std::string copy_numbers(const SampleContent& content, uint8_t* row, StageTimes& times) const;
  std::string write_encoded(const SampleContent& content, const RegionOfInterest& roi, core::Rng& rng,
                            SampleGeometry& geometry, uint8_t* row, StageTimes& times);
  /// For a JPEG: resized row by row as it is decoded.
  std::string write_as_decoded(const SampleContent& content, const SampleGeometry& geometry, uint8_t* row,
                               StageTimes& times);
  void release_scratch(uint64_t encoded_bytes);
  void transform_image(const uint8_t* pixels, int height, int width, const SampleGeometry& geometry, uint8_t* row,
                       StageTimes& times);
  void write_pixels(const SampleContent& content, const RegionOfInterest& roi, core::Rng& rng, SampleGeometry& geometry,
                    uint8_t* row, StageTimes& times);

  const Source& source_;
  const FrameSource* const videos_;      ///< null: samples are single images
  const ExcerptSource* const excerpts_;  ///< null: samples are whole
  const TransformPlan& plan_;
  const DecodeLimits limits_;
  const uint64_t seed_;
  const std::optional<StoredImages> stored_;
  std::vector<int64_t> frames_;  ///< frames of the sample at hand, in one view
  std::vector<Drawn> drawn_;     ///< draws of each of them in the first view; empty where there is only one
  Drawn* partner_ = nullptr;     ///< draws of the image at hand in the first view; null: there is only one view
  bool follows_partner_ = false;
  CropView view_;  ///< crop of the image at hand
  std::vector<uint8_t> encoded_;
  ImageBuffer image_;
  ScratchBytes band_;               ///< rows that are decoded and not yet resized
  std::vector<uint8_t> converted_;  ///< pixels of a source with other channels
  TransformScratch scratch_;
  AugmentScratch augment_scratch_;
};

}  // namespace stoker::data
