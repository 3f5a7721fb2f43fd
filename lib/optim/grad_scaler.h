// SPDX-License-Identifier: Apache-2.0
// Loss scaling for fp16: scale, check, grow and back off, all on the device. The algorithm and its defaults
// are PyTorch's torch.cuda.amp.GradScaler (Micikevicius et al. 2018, "Mixed Precision Training").
#pragma once

#include <torch/types.h>

#include <vector>

#include "config/options.h"

namespace stoker::optim {

struct GradScalerSettings {
  bool enabled = false;
  double init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  int64_t growth_interval = 2000;  ///< updates without inf or NaN before the scale grows
};

/// The state of a scaler, as plain numbers.
struct LossScale {
  double scale = 0;
  int64_t skipped = 0;         ///< updates so far
  int64_t skipped_in_row = 0;  ///< number of skipped updates in a row up to now, by this process
};

/// Disabled, it passes losses through and reports finite gradients without looking.
class GradScaler {
 public:
  GradScaler(const GradScalerSettings& settings, torch::Device device);

  bool enabled() const { return settings_.enabled; }
  torch::Tensor scaled(const torch::Tensor& loss) const;  ///< loss * scale
  /// Divides gradients by the scale in place and notes whether any is not finite. No host sync.
  /// Returns found_inf, float32 [1] on the device; undefined when disabled.
  torch::Tensor unscale(const std::vector<torch::Tensor>& gradients);
  /// After the optimizer step: back off after a non-finite update, grow after `growth_interval` good ones.
  void update();

  // State, float32 [1] / int32 [1] / int64 [1] on the device; reading the values is a host sync.
  torch::Tensor& scale() { return scale_; }
  torch::Tensor& growth_tracker() { return growth_tracker_; }
  torch::Tensor& skipped() { return skipped_; }  ///< updates skipped so far
  /// LossScale as float64 [3] on the device; undefined when disabled. No host sync.
  torch::Tensor figures() const;
  static LossScale read(const double* figures);  ///< reads figures() that were copied to the host

 private:
  GradScalerSettings settings_;
  torch::Tensor scale_, growth_tracker_, skipped_, skipped_in_row_, found_inf_;
};

// Clipping, without a host sync.

/// Scales gradients in place so that their global L2 norm is at most `limit` (Pascanu et al. 2013, algorithm
/// 1), or clamps each value to [-limit, limit]. Returns the norm before clipping, float32 [] on the device
/// (norm mode; undefined tensor in value mode).
torch::Tensor clip_gradients(const std::vector<torch::Tensor>& gradients, double limit, config::ClipMode mode);
/// Multiplies all gradients in place.
void multiply_gradients(const std::vector<torch::Tensor>& gradients, double factor);

}  // namespace stoker::optim
