// SPDX-License-Identifier: Apache-2.0
#include "engine/task/error_scores.h"

namespace stoker::engine {
namespace {

TargetErrors errors_of(const torch::Tensor& differences) {
  return {differences.abs().mean(0), differences.square().mean(0).sqrt(), {}};
}

}  // namespace

TargetErrors target_errors(const torch::Tensor& predicted, const torch::Tensor& truth) {
  const torch::NoGradGuard no_gradients;
  const torch::Tensor wanted = truth.to(at::kDouble);                  // [n, T]
  const torch::Tensor residuals = wanted - predicted.to(at::kDouble);  // [n, T]
  TargetErrors errors = errors_of(residuals);
  const torch::Tensor unexplained = residuals.square().sum(0);
  const torch::Tensor spread = (wanted - wanted.mean(0)).square().sum(0);
  const torch::Tensor exact = (unexplained == 0).to(at::kDouble);
  const torch::Tensor constant = wanted.amax(0) == wanted.amin(0);  // unlike a mean that was rounded
  errors.r2 = torch::where(constant, exact, 1 - unexplained / spread);
  return errors;
}

torch::Tensor angle_difference(const torch::Tensor& a, const torch::Tensor& b) {
  constexpr double kTurn = 360;
  const torch::Tensor difference = a - b;
  return difference - kTurn * torch::round(difference.detach() / kTurn);
}

TargetErrors angle_errors(const torch::Tensor& predicted, const torch::Tensor& truth) {
  const torch::NoGradGuard no_gradients;
  return errors_of(angle_difference(predicted.to(at::kDouble), truth.to(at::kDouble)));
}

}  // namespace stoker::engine
