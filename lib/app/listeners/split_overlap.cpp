// SPDX-License-Identifier: Apache-2.0
#include "app/listeners/split_overlap.h"

#include <algorithm>

#include "core/format.h"
#include "core/log.h"
#include "engine/group/message.h"

namespace stoker::app {
namespace {

/// What any rank has seen is seen by all of them.
void share(data::SeenContents& seen, engine::Group& group) {
  engine::MessageWriter own;
  for (const auto& [sample, digest] : seen.seen()) {
    own.add(sample);
    own.add(static_cast<int64_t>(digest));
  }
  for (const std::string& of_rank : group.gather(own.bytes())) {
    for (engine::MessageReader message(of_rank); !message.at_end();) {
      const int64_t sample = message.number();
      seen.add_seen(sample, static_cast<uint64_t>(message.number()));
    }
  }
}

}  // namespace

SplitOverlap::SplitOverlap(data::Datasets& datasets, engine::Group* group)
    : group_(engine::with_others(group)),
      seen_in_training_(std::make_shared<data::SeenContents>(datasets.train->size())),
      seen_in_validation_(std::make_shared<data::SeenContents>(datasets.val->size())),
      training_(datasets.train),
      validation_(datasets.val) {
  datasets.train = data::make_watched_source(training_, seen_in_training_);
  datasets.val = data::make_watched_source(validation_, seen_in_validation_);
}

void SplitOverlap::stop() {
  seen_in_training_->stop();
  seen_in_validation_->stop();
}

void SplitOverlap::on_start(const engine::StartEvent& event) {
  if (event.start_epoch > 0) stop();  // whoever trained the first epoch has said it
}

void SplitOverlap::on_epoch(const engine::EpochEvent& event) {
  constexpr size_t kExamples = 3;
  if (seen_in_training_->stopped() || !event.has_eval) return;
  stop();
  if (group_ != nullptr) {
    share(*seen_in_training_, *group_);
    share(*seen_in_validation_, *group_);
    if (!group_->is_root()) return;
  }
  const auto shared = seen_in_validation_->found_in(*seen_in_training_);
  if (shared.empty()) return;
  const char* const kind = data::holds_videos(*validation_) ? "videos" : "images";
  std::string examples;
  for (size_t i = 0; i < std::min(kExamples, shared.size()); ++i) {
    examples += core::format("{}{} = {}", i > 0 ? ", " : "", core::printable(validation_->name(shared[i].first)),
                             core::printable(training_->name(shared[i].second)));
  }
  core::log_warning(
      "{} of the {} validation {} are training {}, too: {}{}; what is measured on them was learned by heart; "
      "train audit shows them all",
      core::count_text(static_cast<int64_t>(shared.size())), core::count_text(validation_->size()), kind, kind,
      examples, shared.size() > kExamples ? ", ..." : "");
}

}  // namespace stoker::app
