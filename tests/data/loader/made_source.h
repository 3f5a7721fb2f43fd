// SPDX-License-Identifier: Apache-2.0
// The data of the tests of the loader: images made on the spot, and the settings and digests that most of them share.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/format.h"
#include "core/hash.h"
#include "core/log.h"
#include "data/loader/loader.h"
#include "data/source.h"
#include "made_data.h"

namespace stoker::data::loader_tests {

inline constexpr int kWorkerCounts[] = {0, 1, 2, 7, 16};
inline constexpr int kPrefetches[] = {1, 8};

/// Images made on the spot; a hook sees every read and may fail it.
class MadeSource : public LeafSource {
 public:
  using Hook = std::function<std::string(int64_t index)>;

  MadeSource(int64_t size, bool encoded, Hook hook = nullptr) : hook_(std::move(hook)) {
    class_names_ = {"a", "b", "c"};
    for (int64_t i = 0; i < size; ++i) {
      const int width = 20 + static_cast<int>(i * 7 % 31), height = 20 + static_cast<int>(i * 11 % 29);
      Bytes pixels = pattern_pixels(width, height, 3);
      for (uint8_t& value : pixels) value = static_cast<uint8_t>(value + 37 * i);
      widths_.push_back(width);
      heights_.push_back(height);
      contents_.push_back(!encoded     ? pixels
                          : i % 2 == 0 ? jpeg_of(pixels, width, height)
                                       : png_of(pixels, width, height, 3));
    }
    encoded_ = encoded;
  }

  void damage(int64_t index) {
    contents_[static_cast<size_t>(index)].resize(contents_[static_cast<size_t>(index)].size() / 2);
  }

  int64_t size() const override { return static_cast<int64_t>(contents_.size()); }
  int64_t label(int64_t index) const override { return index % 3; }
  std::string name(int64_t index) const override { return core::format("made/{}", index); }
  std::string relative_name(int64_t index) const override { return name(index); }
  std::string read(int64_t index, std::vector<uint8_t>&, SampleContent& content) const override {
    if (hook_) {
      if (std::string cause = hook_(index); !cause.empty()) return cause;
    }
    const auto i = static_cast<size_t>(index);
    content.bytes = contents_[i].data();
    content.size = contents_[i].size();
    if (!encoded_) {
      content.height = heights_[i];
      content.width = widths_[i];
      content.channels = 3;
    }
    return "";
  }

 private:
  std::vector<Bytes> contents_;
  std::vector<int> widths_, heights_;
  bool encoded_ = false;
  Hook hook_;
};

/// The same images with two numbers each: the sample's, and 100 more.
class TargetedSource : public MadeSource {
 public:
  TargetedSource(int64_t size, bool encoded, Hook hook = nullptr) : MadeSource(size, encoded, std::move(hook)) {
    target_names_ = {"number", "hundred"};
  }
  void targets(int64_t index, float* out) const override {
    out[0] = static_cast<float>(index);
    out[1] = static_cast<float>(100 + index);
  }
};

inline TransformPlan small_plan() {
  TransformPlan plan;
  plan.training = true;
  plan.shape = square_shape(16, 3);
  plan.train_crop = config::TrainCrop::random_resized;
  plan.hflip = 0.5;
  return plan;
}

inline LoaderSettings small_settings(int64_t workers, int64_t prefetch) {
  LoaderSettings settings;
  settings.batch_size = 8;
  settings.num_workers = workers;
  settings.prefetch_factor = prefetch;
  settings.shuffle = true;
  settings.seed = 42;
  return settings;
}

inline void add_batch(const HostBatch& batch, core::Hasher& hasher) {
  hasher.add(batch.images.data_ptr<uint8_t>(), static_cast<uint64_t>(batch.images.numel()));
  hasher.add(batch.labels.data_ptr<int64_t>(), static_cast<uint64_t>(batch.labels.numel()) * 8);
  hasher.add(batch.samples.data(), batch.samples.size() * 8);
  hasher.add(&batch.planned_images, 8);
}

/// Digest of everything that the loader hands over in an epoch from `first_batch` on.
inline std::string epoch_digest(Loader& loader, int64_t epoch, int64_t first_batch = 0) {
  loader.begin_epoch(epoch, first_batch);
  core::Hasher hasher;
  for (HostBatch batch; loader.next(batch);) {
    add_batch(batch, hasher);
    loader.release(batch);
  }
  return hasher.hex();
}

/// Warnings about skipped images are expected here, not worth showing.
struct QuietLog {
  QuietLog() { core::set_console_level(core::LogLevel::error); }
  ~QuietLog() { core::set_console_level(core::LogLevel::info); }
};

}  // namespace stoker::data::loader_tests
