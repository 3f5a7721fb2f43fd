// SPDX-License-Identifier: Apache-2.0
// How far numbers are from what they should be, per target.
#pragma once

#include <torch/types.h>

namespace stoker::engine {

/// All float64 [T] on the device of the inputs.
struct TargetErrors {
  torch::Tensor mae;   ///< mean absolute error, unit of the target
  torch::Tensor rmse;  ///< root of the mean squared error, unit of the target
  torch::Tensor r2;    ///< coefficient of determination; for a constant target 1 if met exactly, else 0
};

/// predicted, truth float [n, T], n > 0. As scikit-learn's mean_absolute_error, mean_squared_error and r2_score with
/// multioutput="raw_values", in float64.
TargetErrors target_errors(const torch::Tensor& predicted, const torch::Tensor& truth);

/// Differences of angles, brought to [-180, 180]. degrees, any shape; the gradient is that of the plain difference.
torch::Tensor angle_difference(const torch::Tensor& a, const torch::Tensor& b);

/// target_errors of angles in degrees: 359 and 1 are 2 apart. r2 is undefined.
TargetErrors angle_errors(const torch::Tensor& predicted, const torch::Tensor& truth);

}  // namespace stoker::engine
