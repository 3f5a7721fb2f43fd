// SPDX-License-Identifier: Apache-2.0
#include "app/listeners/split_overlap.h"

#include <algorithm>

#include "core/format.h"
#include "core/log.h"

namespace stoker::app {

SplitOverlap::SplitOverlap(data::Datasets& datasets) : training_(datasets.train), validation_(datasets.val) {
  if (data::holds_videos(*training_)) return;
  seen_in_training_ = std::make_shared<data::SeenContents>(training_->size());
  seen_in_validation_ = std::make_shared<data::SeenContents>(validation_->size());
  datasets.train = data::make_watched_source(training_, seen_in_training_);
  datasets.val = data::make_watched_source(validation_, seen_in_validation_);
}

void SplitOverlap::stop() {
  if (seen_in_training_ == nullptr) return;
  seen_in_training_->stop();
  seen_in_validation_->stop();
}

void SplitOverlap::on_start(const engine::StartEvent& event) {
  if (event.start_epoch > 0) stop();  // whoever trained the first epoch has said it
}

void SplitOverlap::on_epoch(const engine::EpochEvent& event) {
  constexpr size_t kExamples = 3;
  if (seen_in_training_ == nullptr || seen_in_training_->stopped() || !event.has_eval) return;
  stop();
  const auto shared = seen_in_validation_->found_in(*seen_in_training_);
  if (shared.empty()) return;
  std::string examples;
  for (size_t i = 0; i < std::min(kExamples, shared.size()); ++i) {
    examples += core::format("{}{} = {}", i > 0 ? ", " : "", core::printable(validation_->name(shared[i].first)),
                             core::printable(training_->name(shared[i].second)));
  }
  core::log_warning(
      "{} of the {} validation images are training images, too: {}{}; what is measured on them was learned by heart; "
      "train audit shows them all",
      core::count_text(static_cast<int64_t>(shared.size())), core::count_text(validation_->size()), examples,
      shared.size() > kExamples ? ", ..." : "");
}

}  // namespace stoker::app
