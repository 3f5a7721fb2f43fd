// SPDX-License-Identifier: Apache-2.0
// How long an epoch takes, from some seconds of the training that is configured, its data included.
#pragma once

#include <cstdint>

#include "config/options.h"
#include "core/text/json.h"

namespace stoker::data {
struct Datasets;
}
namespace stoker::engine {
struct Learner;
class Task;
}  // namespace stoker::engine

namespace stoker::app {

struct EpochEstimate {
  int64_t train_images = 0;
  int64_t batch_size = 0;  ///< images per device
  int64_t updates_measured = 0;
  double images_per_second = 0;
  double data_wait_share = 0;  ///< 0 to 1
  double epoch_seconds = 0;    ///< training alone
  double eval_seconds = 0;     ///< one validation
  int64_t epochs = 0;
};

/// Trains for some 8 seconds, or 3 epochs where these are shorter, and evaluates for 2 at most; the weights are others
/// afterwards. Throws core::StopRequested.
EpochEstimate measure_epoch(const config::ResolvedOptions& options, const data::Datasets& datasets,
                            engine::Learner& learner, const engine::Task& task);

core::Json estimate_json(const EpochEstimate& estimate);

}  // namespace stoker::app
