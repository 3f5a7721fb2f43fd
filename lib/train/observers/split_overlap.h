// SPDX-License-Identifier: Apache-2.0
// Warns at the end of a run's first epoch of images that are in both splits.
#pragma once

#include <memory>

#include "data/source.h"
#include "engine/run/events.h"

namespace stoker::train {

class SplitOverlapWarning : public engine::Observer {
 public:
  /// The sources name the samples.
  SplitOverlapWarning(std::shared_ptr<const data::Source> training, std::shared_ptr<const data::Source> validation);

  void on_epoch(const engine::EpochEvent& event) override;

 private:
  const std::shared_ptr<const data::Source> training_, validation_;
};

}  // namespace stoker::train
