// SPDX-License-Identifier: Apache-2.0
// Warns at the end of a run's first epoch of images that are in both splits: what was seen of each is compared, by all
// processes of the run together.
#pragma once

#include <memory>
#include <string>

#include "data/audit/seen_contents.h"
#include "data/open_datasets.h"
#include "engine/group/group.h"
#include "engine/run/events.h"

namespace stoker::app {

class SplitOverlap : public engine::Observer {
 public:
  /// Puts sources in front of those of `datasets` that note what is read. `group`: null where this process is alone;
  /// else all of its ranks listen with one of these, and exchange in on_epoch().
  explicit SplitOverlap(data::Datasets& datasets, engine::Group* group = nullptr);

  void on_start(const engine::StartEvent& event) override;
  void on_epoch(const engine::EpochEvent& event) override;

 private:
  void stop();

  engine::Group* const group_;
  std::shared_ptr<data::SeenContents> seen_in_training_, seen_in_validation_;
  std::shared_ptr<const data::Source> training_, validation_;
};

}  // namespace stoker::app
