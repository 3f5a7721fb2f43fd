// SPDX-License-Identifier: Apache-2.0
#include "plan/epoch_estimate.h"

namespace stoker::plan {

core::Json estimate_json(const EpochEstimate& estimate) {
  return {{"train_images", estimate.train_images},         {"batch_size", estimate.batch_size},
          {"updates_measured", estimate.updates_measured}, {"images_per_second", estimate.images_per_second},
          {"data_wait_share", estimate.data_wait_share},   {"epoch_seconds", estimate.epoch_seconds},
          {"eval_seconds", estimate.eval_seconds},         {"epochs", estimate.epochs},
          {"update_seconds", estimate.update_seconds},     {"exchange_seconds", estimate.exchange_seconds}};
}

}  // namespace stoker::plan
