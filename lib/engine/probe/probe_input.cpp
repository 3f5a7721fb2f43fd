// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/probe_input.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <numeric>

#include "engine/device/device.h"
#include "engine/device/without_onednn.h"

namespace stoker::engine {

int64_t side_of(const ProbeSettings& settings) { return std::max(settings.input.end()[-1], settings.input.end()[-2]); }

bool is_square(const ProbeSettings& settings) { return settings.input.end()[-1] == settings.input.end()[-2]; }

data::Batch noise_batch(const ProbeSettings& settings, int64_t images, int64_t side, torch::Device device) {
  data::Batch batch;
  std::vector<int64_t> shape = settings.input;
  if (side != side_of(settings)) shape.end()[-2] = shape.end()[-1] = side;
  shape.insert(shape.begin(), images);
  const auto format = settings.channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
  const auto options = torch::TensorOptions().device(device);
  std::vector<int64_t> frames = {-1};  // each lies in memory as a single image does
  frames.insert(frames.end(), shape.end() - 3, shape.end());
  frames[0] = std::accumulate(shape.begin(), shape.end() - 3, int64_t{1}, std::multiplies<>());
  batch.images = at::empty(frames, options.memory_format(format)).uniform_(-1, 1);
  if (shape.size() > 4) batch.images = batch.images.unflatten(0, at::IntArrayRef(shape).slice(0, shape.size() - 3));
  // Classes and targets in turn: a loss on a single one would vanish, and gradients of next to nothing are slow.
  const int64_t learned = std::max<int64_t>(1, settings.num_classes);
  batch.labels = at::arange(images, options.dtype(at::kLong)).remainder_(learned);
  batch.targets = at::arange(images * learned, options.dtype(at::kFloat)).remainder_(2).view({images, learned});
  batch.planned_images = images;
  return batch;
}

bool takes_squares_of(model::ImageModel& model, const ProbeSettings& settings, int64_t side, torch::Device device) {
  const torch::NoGradGuard no_grad;
  const WithoutOnednn only_shapes;
  try {
    model.forward(noise_batch(settings, /*images=*/2, side, device).images);
    return true;
  } catch (const std::exception& error) {  // a network of one size rejects others with any exception
    if (is_out_of_memory(error, free_memory_share(device))) throw;
    return false;
  }
}

int64_t side_to_try(model::ImageModel& model, const ProbeSettings& settings, torch::Device device) {
  constexpr int64_t kTooLarge = 512, kEnough = 256;  // pixels
  const int64_t side = side_of(settings);
  if (!is_square(settings) || side <= kTooLarge) return side;
  return takes_squares_of(model, settings, kEnough, device) ? kEnough : side;
}

}  // namespace stoker::engine
