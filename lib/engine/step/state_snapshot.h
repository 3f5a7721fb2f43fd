// SPDX-License-Identifier: Apache-2.0
// State that a forward pass changes besides its result: buffers of the network and random numbers. Kept so that it can
// be put back.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <vector>

#include "engine/device/random_state.h"
#include "model/image_model.h"

namespace stoker::engine {

/// The buffers of a module (such as batch norm's running statistics) as they were when this was made.
class BufferSnapshot {
 public:
  explicit BufferSnapshot(const torch::nn::Module& module);
  void restore() const;

 private:
  struct Kept {
    torch::Tensor buffers;  ///< as model::joined_buffers() has them
    torch::Tensor values;   ///< what they were
  };
  std::vector<Kept> kept_;
};

/// Buffers, and the random state of the CPU and of `device`.
class StateSnapshot {
 public:
  StateSnapshot(const torch::nn::Module& module, torch::Device device)
      : buffers_(module), random_(random_state(device)), device_(device) {}
  void restore() const {
    buffers_.restore();
    restore_random_state(random_, device_);
  }

 private:
  BufferSnapshot buffers_;
  RandomState random_;
  torch::Device device_;
};

// Whether a network can train on a batch of one image. Batch norm in training needs two values per channel at least:
// one image is enough where its maps are larger than one value, and not where they are a single value.

/// Tries a forward pass without gradients. `model` is in training mode, on the device of `image` [1, ...]; its buffers
/// and the random state are as before afterwards, and gradients that were gathered stay.
bool trains_on_one_image(model::ImageModel& model, const torch::Tensor& image);

}  // namespace stoker::engine
