// SPDX-License-Identifier: Apache-2.0
#include "data/feed/resident_pixels.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/index.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <atomic>
#include <cstring>
#include <mutex>

#include "core/error.h"
#include "core/format.h"
#include "core/system/worker_pool.h"
#include "data/image/pixels/image_buffer.h"

namespace stoker::data {
namespace {

/// Reads whole images as pixels of `channels` channels; one per thread.
class PixelReader {
 public:
  PixelReader(const Source& source, const TransformPlan& plan, const DecodeLimits& limits)
      : source_(source), channels_(plan.channels()), limits_(limits) {}

  /// Returns "" or why there are no pixels. They are valid until the next call.
  std::string read(int64_t sample) {
    SampleContent content;
    std::string cause = source_.read(sample, buffer_, content);
    if (!cause.empty()) return cause;
    if (content.element != Element::uint8) return "samples are not bytes";
    if (!content.is_pixels()) {
      cause = decode_image(content.bytes, content.size, channels_, limits_, decoded_);
      if (!cause.empty()) return cause;
      height = decoded_.height;
      width = decoded_.width;
      pixels = decoded_.pixels.data();
      return "";
    }
    height = content.height;
    width = content.width;
    pixels = content.bytes;
    if (content.channels == channels_) return "";
    convert_channels(pixels, int64_t{height} * width, content.channels, channels_, converted_);
    pixels = converted_.data();
    return "";
  }

  int height = 0, width = 0;
  const uint8_t* pixels = nullptr;  ///< HWC

 private:
  const Source& source_;
  const int channels_;
  const DecodeLimits limits_;
  std::vector<uint8_t> buffer_, converted_;
  ImageBuffer decoded_;
};

/// The reason, in the transform or the kind of samples, why this is not possible.
std::string obstacle_of(const Source& source, const TransformPlan& plan) {
  if (holds_videos(source) || plan.shape.frames > 0) return "samples are videos";
  if (!plan.views.empty()) return "several crops of an image are evaluated";
  if (plan.shape.element != Element::uint8) return "samples are not bytes";
  if (plan.training && plan.train_crop == config::TrainCrop::random_resized) return "train-crop random-resized resizes";
  if (plan.augment.is_active()) return "images are changed besides cropping and mirroring";
  if (plan.masks.is_active()) return "samples are masked";
  if (source.region(0).width > 0) return "images are cropped to a part that matters";
  return "";
}

/// For windows that `plan` draws.
std::string size_obstacle(const TransformPlan& plan, int height, int width) {
  core::Rng rng(0, core::RngPurpose::augment, 0, 0);
  const SampleGeometry geometry = draw_geometry(plan, width, height, rng);
  if (has_bars(plan, geometry)) return "images get black bars";
  if (geometry.keeps_size()) return "";
  return core::format("images of {} x {} are resized to {} x {}", height, width, plan.out_height(), plan.out_width());
}

}  // namespace

ResidentPixels::Loaded ResidentPixels::load(const Source& source, const TransformPlan& plan, const Settings& settings) {
  if (std::string obstacle = obstacle_of(source, plan); !obstacle.empty()) return {nullptr, obstacle};
  PixelReader first(source, plan, settings.limits);
  if (const std::string cause = first.read(0); !cause.empty()) {
    return {nullptr, core::printable(source.name(0)) + ": " + cause};
  }
  StoredImages layout{first.height, first.width, 0};
  if (std::string obstacle = size_obstacle(plan, layout.height, layout.width); !obstacle.empty()) {
    return {nullptr, obstacle};
  }
  if (plan.training && plan.train_crop == config::TrainCrop::padded) {
    layout.border = static_cast<int>(plan.crop_padding);
  }
  const int64_t height = layout.height + 2 * layout.border, width = layout.width + 2 * layout.border;
  const int64_t row_bytes = width * plan.channels(), image_bytes = height * row_bytes;
  if (image_bytes * source.size() > settings.budget_bytes) {
    return {nullptr,
            core::format("{} do not fit into {}", core::bytes_text(static_cast<double>(image_bytes * source.size())),
                         core::bytes_text(static_cast<double>(settings.budget_bytes)))};
  }
  const torch::Tensor host = at::zeros({source.size(), height, width, plan.channels()}, torch::kUInt8);
  std::mutex mutex;
  std::string obstacle;
  std::atomic<bool> gives_up{false};
  core::for_each_index(source.size(), settings.threads, [&] {
    return [&, reader = std::make_shared<PixelReader>(source, plan, settings.limits)](int64_t sample) {
      if (gives_up) return;
      std::string cause = reader->read(sample);
      if (cause.empty() && (reader->height != layout.height || reader->width != layout.width)) {
        cause = core::format("is {} x {}, but the first image is {} x {}", reader->height, reader->width, layout.height,
                             layout.width);
      }
      if (!cause.empty() || source.region(sample).width > 0) {
        const std::lock_guard<std::mutex> lock(mutex);
        if (cause.empty()) cause = "only a part of it matters";
        obstacle = core::printable(source.name(sample)) + ": " + cause;
        gives_up = true;
        return;
      }
      uint8_t* to = host.data_ptr<uint8_t>() + sample * image_bytes + layout.border * (row_bytes + plan.channels());
      const int64_t own_bytes = int64_t{layout.width} * plan.channels();
      for (int y = 0; y < layout.height; ++y, to += row_bytes) {
        std::memcpy(to, reader->pixels + y * own_bytes, static_cast<size_t>(own_bytes));
      }
    };
  });
  if (!obstacle.empty()) return {nullptr, obstacle};
  return {std::shared_ptr<const ResidentPixels>(new ResidentPixels(layout, plan, host.to(settings.device))), ""};
}

ResidentPixels::ResidentPixels(const StoredImages& layout, const TransformPlan& plan, torch::Tensor pixels)
    : layout_(layout), pixels_(std::move(pixels)) {
  const auto numbers = torch::TensorOptions(pixels_.device()).dtype(torch::kInt64);
  rows_ = at::arange(plan.shape.height, numbers).unsqueeze(0);
  columns_ = at::arange(plan.shape.width, numbers).unsqueeze(0);
  mirrored_ = plan.shape.width - 1 - columns_;
}

torch::Tensor ResidentPixels::images_of(const torch::Tensor& recipes) const {
  const torch::NoGradGuard no_gradients;
  const torch::Tensor numbers = recipes.reshape({recipes.size(0), static_cast<int64_t>(sizeof(SampleRecipe))})
                                    .view(torch::kInt32)
                                    .to(torch::kInt64);                                    // [n, 4]
  const auto field = [&numbers](int64_t column) { return numbers.narrow(1, column, 1); };  // [n, 1]
  const torch::Tensor ys = field(1) + rows_;
  const torch::Tensor xs = field(2) + at::where(field(3) == 1, mirrored_, columns_);
  return at::index(pixels_, {field(0).unsqueeze(2), ys.unsqueeze(2), xs.unsqueeze(1)});
}

}  // namespace stoker::data
