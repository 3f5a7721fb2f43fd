// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/probe_input.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

namespace stoker::engine {

int64_t side_of(const ProbeSettings& settings) { return std::max(settings.input.end()[-1], settings.input.end()[-2]); }

data::Batch noise_batch(const ProbeSettings& settings, int64_t images, int64_t side, torch::Device device) {
  data::Batch batch;
  std::vector<int64_t> shape = settings.input;
  if (side != side_of(settings)) shape.end()[-2] = shape.end()[-1] = side;
  shape.insert(shape.begin(), images);
  const bool channels_last = settings.channels_last && shape.size() == 4;
  const auto format = channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
  const auto options = torch::TensorOptions().device(device);
  batch.images = at::empty(shape, options.memory_format(format));
  batch.images.uniform_(-1, 1);
  batch.labels = at::zeros({images}, options.dtype(at::kLong));
  batch.targets = at::zeros({images, settings.num_classes}, options);
  batch.planned_images = images;
  return batch;
}

}  // namespace stoker::engine
