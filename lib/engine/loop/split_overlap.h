// SPDX-License-Identifier: Apache-2.0
// Which samples are in both splits: what was read of each is noted, and compared after the first epoch by all ranks.
#pragma once

#include <memory>
#include <vector>

#include "data/audit/seen_contents.h"
#include "engine/group/group.h"
#include "engine/run/events.h"

namespace stoker::engine {

class SplitOverlap {
 public:
  /// Compares nothing.
  SplitOverlap() = default;
  /// Puts sources in front of `training` and `validation` that note the contents that are read.
  SplitOverlap(std::shared_ptr<const data::Source>& training, std::shared_ptr<const data::Source>& validation);

  /// Notes nothing more: who trained the first epoch has compared.
  void stop();

  /// Validation samples whose content was read in training, too, ascending. Compares once and stops: empty from then
  /// on. All ranks make this call, and each gets what all of them have read. Throws core::Error{peer_lost}.
  std::vector<SharedSample> compare(Group& group);

 private:
  std::shared_ptr<data::SeenContents> seen_in_training_, seen_in_validation_;
};

}  // namespace stoker::engine
