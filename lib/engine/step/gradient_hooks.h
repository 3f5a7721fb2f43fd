// SPDX-License-Identifier: Apache-2.0
// Calls back when the backward pass is done with the gradient of a parameter.
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace stoker::engine {

/// For one network, one backward pass at a time.
class GradientHooks {
 public:
  using Call = std::function<void(size_t parameter)>;

  /// `parameters` are leaves; those that require no gradient are never called for.
  explicit GradientHooks(const std::vector<torch::Tensor>& parameters);
  ~GradientHooks();
  GradientHooks& operator=(GradientHooks&&) = delete;  // not copied, not moved

  /// From here on, until disarm(): each time that a gradient has been added to that of a parameter, by the thread that
  /// did it. Both only between backward passes.
  void arm(Call call);
  void disarm();

 private:
  struct Armed {
    Call call;
  };
  const std::shared_ptr<Armed> armed_ = std::make_shared<Armed>();
  std::vector<std::shared_ptr<void>> accumulators_;  ///< a parameter does not keep its own alive
};

}  // namespace stoker::engine
