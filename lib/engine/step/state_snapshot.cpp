// SPDX-License-Identifier: Apache-2.0
#include "engine/step/state_snapshot.h"

#include <c10/util/Exception.h>

#include <string>

#include "engine/device/without_onednn.h"
#include "engine/memory/activation_arena.h"
#include "model/buffers.h"
#include "model/layers/random_source.h"

namespace stoker::engine {

BufferSnapshot::BufferSnapshot(const torch::nn::Module& module) {
  const torch::NoGradGuard no_gradients;
  for (const torch::Tensor& buffers : model::joined_buffers(module)) kept_.push_back({buffers, buffers.clone()});
}

void BufferSnapshot::restore() const {
  const torch::NoGradGuard no_gradients;
  for (const Kept& kept : kept_) torch::Tensor(kept.buffers).copy_(kept.values);
}

bool trains_on_one_image(model::ImageModel& model, const torch::Tensor& image) {
  const StateSnapshot before(model, image.device());
  bool can = true;
  try {
    const ActivationArenaScope arena;
    const torch::NoGradGuard no_gradients;
    const WithoutOnednn only_shapes;
    const model::DrawScope draws(make_generator(/*seed=*/0, image.device()));
    model.forward(image);
  } catch (const c10::Error& error) {
    // LibTorch's own words, in every release since 1.0; there is no type for it.
    can = std::string(error.what()).find("more than 1 value per channel") == std::string::npos;
    if (can) {
      before.restore();
      throw;
    }
  }
  before.restore();
  return can;
}

}  // namespace stoker::engine
