// SPDX-License-Identifier: Apache-2.0
// Digests of tensors, by which two computations of the same thing are compared without keeping either.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/step/update_step.h"
#include "model/image_model.h"

namespace stoker::engine {

/// XXH3-128, hexadecimal, of type, shape and values; the same on every device and in every memory format. The rows of a
/// tensor with rows are read one after the other, so that no second copy of it is held. Waits for the device.
std::string tensor_digest(const torch::Tensor& tensor);
/// The digest of names and tensors, in order.
std::string tensor_digest(const std::vector<model::NamedTensor>& tensors);

// The digest of all images of an update, as the network got them.

class ImageDigest : public StepWatcher {
 public:
  void on_batch(const SeenBatch& seen) override;
  /// XXH3-128 of the digests of the batches, in the order of their numbers.
  std::string hex() const;

  /// For other ranks, which see other batches of the same update.
  std::string message() const;
  void add_message(const std::string& message);

 private:
  std::map<int64_t, std::string> batches_;
};

}  // namespace stoker::engine
