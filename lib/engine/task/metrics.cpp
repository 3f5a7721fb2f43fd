// SPDX-License-Identifier: Apache-2.0
#include "engine/task/metrics.h"

#include "engine/run/run_progress.h"

namespace stoker::engine {

SumValues epoch_sums(const RunProgress& at) { return {at.epoch_loss_sum, at.epoch_score_sum, at.epoch_images}; }

void set_epoch_sums(const SumValues& sums, RunProgress& at) {
  at.epoch_loss_sum = sums.loss_sum;
  at.epoch_score_sum = sums.score_sum;
  at.epoch_images = sums.images;
}

void RunningSums::restore(const SumValues& values) {
  sums_ = torch::tensor({values.loss_sum, values.score_sum}, at::kDouble).to(device_);
  images_ = values.images;
}

void RunningSums::add(const torch::Tensor& loss_sum, const torch::Tensor& score_sum, int64_t images) {
  const torch::NoGradGuard no_gradients;
  sums_[0].add_(loss_sum.detach());
  if (score_sum.defined()) sums_[1].add_(score_sum.detach());
  images_ += images;
}

void RunningSums::add(const RunningSums& other) {
  sums_.add_(other.sums_);
  images_ += other.images_;
}

RunningSums RunningSums::copy() const {
  RunningSums other = *this;
  other.sums_ = sums_.clone();
  return other;
}

SumValues RunningSums::read() const {
  const torch::Tensor host = sums_.to(torch::kCPU);
  return read(host.data_ptr<double>());
}

}  // namespace stoker::engine
