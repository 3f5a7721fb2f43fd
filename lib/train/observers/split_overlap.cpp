// SPDX-License-Identifier: Apache-2.0
#include "train/observers/split_overlap.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/format.h"
#include "core/log.h"

namespace stoker::train {

SplitOverlapWarning::SplitOverlapWarning(std::shared_ptr<const data::Source> training,
                                         std::shared_ptr<const data::Source> validation)
    : training_(std::move(training)), validation_(std::move(validation)) {}

void SplitOverlapWarning::on_epoch(const engine::EpochEvent& event) {
  constexpr size_t kExamples = 3;
  const std::vector<engine::SharedSample>& shared = event.in_both_splits;
  if (shared.empty()) return;
  const char* const kind = data::holds_videos(*validation_) ? "videos" : "images";
  std::string examples;
  for (size_t i = 0; i < std::min(kExamples, shared.size()); ++i) {
    examples += core::format("{}{} = {}", i > 0 ? ", " : "", core::printable(validation_->name(shared[i].validation)),
                             core::printable(training_->name(shared[i].training)));
  }
  core::log_warning(
      "{} of the {} validation {} are training {}, too: {}{}; data leak: scores on these are inflated; "
      "train audit shows them all",
      core::count_text(static_cast<int64_t>(shared.size())), core::count_text(validation_->size()), kind, kind,
      examples, shared.size() > kExamples ? ", ..." : "");
}

}  // namespace stoker::train
