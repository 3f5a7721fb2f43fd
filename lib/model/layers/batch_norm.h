// SPDX-License-Identifier: Apache-2.0
// Batch norm as networks call it: LibTorch's, or with the statistics of a batch whose parts several processes hold.
#pragma once

#include <torch/nn/modules/batchnorm.h>

#include <functional>
#include <memory>
#include <vector>

namespace stoker::model {

/// A batch of which this thread computes a part. All parts make the same calls of `sum` in the same order.
struct SharedBatch {
  int64_t part = 0, parts = 1;
  bool has_images = true;                              ///< false: a stand-in is computed, which counts for nothing
  std::function<void(const torch::Tensor& part)> sum;  ///< over all parts, in place
};

/// For its lifetime batch norms that train on this thread have the statistics of the whole batch; null: of what they
/// see. Scopes nest. Borrows the batch; a backward pass needs it, too.
class SharedBatchScope {
 public:
  explicit SharedBatchScope(const SharedBatch* batch);
  ~SharedBatchScope();
  SharedBatchScope(const SharedBatchScope&) = delete;
  SharedBatchScope& operator=(const SharedBatchScope&) = delete;

 private:
  const SharedBatch* outer_;
};

/// The batch of the innermost scope of this thread; null outside of any.
const SharedBatch* shared_batch();

/// norm(x), x [B, C, H, W].
torch::Tensor normalise(torch::nn::BatchNorm2dImpl& norm, const torch::Tensor& x);

/// Those below `module`.
std::vector<std::shared_ptr<torch::nn::BatchNorm2dImpl>> batch_norms_of(const torch::nn::Module& module);

}  // namespace stoker::model
