// SPDX-License-Identifier: Apache-2.0
// How long an epoch takes, as it was measured: plain values.
#pragma once

#include <cstdint>

#include "core/text/json.h"

namespace stoker::plan {

struct EpochEstimate {
  int64_t train_images = 0;
  int64_t batch_size = 0;  ///< images per device
  int64_t updates_measured = 0;
  double images_per_second = 0;
  double data_wait_share = 0;  ///< 0 to 1
  double epoch_seconds = 0;    ///< training alone
  double eval_seconds = 0;     ///< one validation
  int64_t epochs = 0;
  double update_seconds = 0;
  double exchange_seconds = 0;  ///< of an update, that the fastest exchange of all ranks is waited for
};
core::Json estimate_json(const EpochEstimate& estimate);

}  // namespace stoker::plan
