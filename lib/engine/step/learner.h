// SPDX-License-Identifier: Apache-2.0
// The state that training changes: the weights and all that moves with them.
#pragma once

#include <torch/types.h>

#include <memory>
#include <string>
#include <vector>

#include "model/image_model.h"
#include "optim/ema.h"
#include "optim/grad_scaler.h"
#include "optim/optimizer.h"

namespace stoker::engine {

class Teacher;

inline constexpr const char* kStatistics = "statistics.";
inline constexpr const char* kStatisticsOfAverage = "statistics_of_average.";

/// The file that a run began with; empty: random weights, or a checkpoint has replaced them.
struct StartingWeights {
  std::string file, sha256;
};

/// A network with what trains it. Each part is made once, in train/setup; a checkpoint saves and restores all of them.
struct Learner {
  std::shared_ptr<model::ImageModel> model;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::unique_ptr<optim::GradScaler> scaler;
  std::unique_ptr<optim::Ema> ema;   ///< null when off
  std::shared_ptr<Teacher> teacher;  ///< whose outputs are learned, too; null: none
  torch::Device device = torch::kCPU;
  StartingWeights started_from;
  /// Running statistics of training, under kStatistics and kStatisticsOfAverage, where others were measured after the
  /// last update; a run that continues restores them.
  std::vector<model::NamedTensor> statistics_before;
};

}  // namespace stoker::engine
