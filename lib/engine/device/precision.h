// SPDX-License-Identifier: Apache-2.0
// In which number format a forward pass computes.
#pragma once

#include <torch/types.h>

namespace stoker::engine {

/// float32 throughout, or autocast to bfloat16 / float16 with float32 weights.
struct Precision {
  torch::Device device = torch::kCPU;
  bool autocast = false;
  at::ScalarType dtype = at::kBFloat16;
};

/// Autocast for the scope, in the calling thread only (its state is thread-local). Leaving the outermost scope
/// drops the cache of converted weights: kept any longer, it would serve the weights of the last update.
class AutocastScope {
 public:
  explicit AutocastScope(const Precision& precision);
  ~AutocastScope();
  AutocastScope& operator=(AutocastScope&&) = delete;  // not copied, not moved

 private:
  at::DeviceType device_;
  bool was_enabled_;
  at::ScalarType was_dtype_;
};

/// For its lifetime autocast converts weights again each time they are used, in the calling thread only.
class NoAutocastCacheScope {
 public:
  NoAutocastCacheScope();
  ~NoAutocastCacheScope();
  NoAutocastCacheScope& operator=(NoAutocastCacheScope&&) = delete;  // not copied, not moved

 private:
  bool was_enabled_;
};

}  // namespace stoker::engine
