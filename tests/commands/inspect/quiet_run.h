// SPDX-License-Identifier: Apache-2.0
// Updates as they are watched, of a run that nothing is wrong with.
#pragma once

#include "commands/inspect/watched_update.h"

namespace stoker::train {

/// Updates 1 to `count` of a run in which nothing stands out.
inline std::vector<WatchedUpdate> quiet_run(int64_t count) {
  std::vector<WatchedUpdate> updates;
  for (int64_t i = 1; i <= count; ++i) {
    WatchedUpdate update;
    update.update = i;
    update.epoch = 1;
    update.learning_rate = 0.1;
    update.loss = 1 + 0.1 * static_cast<double>(i % 3);
    update.gradient_norm = 2;
    update.layers = {{"stem", 1}, {"head", 1}};
    for (int64_t s = 0; s < 8; ++s) {
      SampleRecord sample;
      sample.sample = 10 * i + s;
      sample.loss = update.loss;
      update.samples.push_back(sample);
    }
    updates.push_back(update);
  }
  return updates;
}

}  // namespace stoker::train
