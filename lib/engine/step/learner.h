// SPDX-License-Identifier: Apache-2.0
// The state that training changes: the weights and all that moves with them.
#pragma once

#include <torch/types.h>

#include <memory>

#include "model/image_model.h"
#include "optim/ema.h"
#include "optim/grad_scaler.h"
#include "optim/optimizer.h"

namespace stoker::engine {

/// A network with what trains it. Each part is made once, in app/setup; a checkpoint saves and restores all of them.
struct Learner {
  std::shared_ptr<model::ImageModel> model;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::unique_ptr<optim::GradScaler> scaler;
  std::unique_ptr<optim::Ema> ema;  ///< null when off
  torch::Device device = torch::kCPU;
};

}  // namespace stoker::engine
