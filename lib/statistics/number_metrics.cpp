// SPDX-License-Identifier: Apache-2.0
// Errors of numbers and of angles, under weights.
#include <cmath>

#include "statistics/weighted_metrics.h"

namespace stoker::statistics {
namespace {

constexpr double kTurn = 360;  // degrees

class NumberMetrics : public WeightedMetrics {
 public:
  explicit NumberMetrics(const EvaluatedSamples& samples)
      : samples_(samples),
        targets_(static_cast<size_t>(samples.columns)),
        are_angles_(samples.task == config::TaskKind::head_pose) {
    names_ = {{"loss", false, true}, {"mae", false, true}, {"rmse", false, true}};
    if (are_angles_) {
      for (const char* const angle : {"yaw", "pitch", "roll"})
        names_.push_back({std::string("mae_") + angle, false, true});
    } else {
      names_.push_back({"r2"});
    }
    for (size_t i = 0; i < samples.outputs.size(); ++i) {
      double error = double{samples.truth[i]} - double{samples.outputs[i]};
      if (are_angles_) error -= kTurn * std::nearbyint(error / kTurn);
      errors_.push_back(error);
    }
  }

  void values(const std::vector<uint32_t>& weights, double* values) const override {
    std::vector<double> absolute(targets_), squares(targets_), sum(targets_), sum_of_squares(targets_);
    double all = 0, loss = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] == 0) continue;
      const double weight = weights[i];
      all += weight;
      loss += weight * double{samples_.loss[i]};
      for (size_t t = 0; t < targets_; ++t) {
        const double error = errors_[i * targets_ + t];
        // From the first one, so that a mean far from 0 costs no digits.
        const double truth = double{samples_.truth[i * targets_ + t]} - double{samples_.truth[t]};
        absolute[t] += weight * std::abs(error);
        squares[t] += weight * error * error;
        sum[t] += weight * truth;
        sum_of_squares[t] += weight * truth * truth;
      }
    }
    double mae = 0, rmse = 0, r2 = 0;
    const auto n = static_cast<double>(targets_);
    for (size_t t = 0; t < targets_; ++t) {
      mae += absolute[t] / all / n;
      rmse += std::sqrt(squares[t] / all) / n;
      const double spread = sum_of_squares[t] - sum[t] * sum[t] / all;
      const bool constant = spread <= 1e-12 * sum_of_squares[t];
      r2 += (constant ? (squares[t] == 0 ? 1 : 0) : 1 - squares[t] / spread) / n;
    }
    values[0] = loss / all;
    values[1] = mae;
    values[2] = rmse;
    if (!are_angles_) values[3] = r2;
    for (size_t t = 0; are_angles_ && t < targets_; ++t) values[3 + t] = absolute[t] / all;
  }

 private:
  const EvaluatedSamples& samples_;
  const size_t targets_;
  const bool are_angles_;
  std::vector<double> errors_;  ///< [n, targets]
};

}  // namespace

std::unique_ptr<WeightedMetrics> make_number_metrics(const EvaluatedSamples& samples) {
  return std::make_unique<NumberMetrics>(samples);
}

}  // namespace stoker::statistics
