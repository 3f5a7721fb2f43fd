// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/split_overlap.h"

#include <string>

#include "engine/group/message.h"

namespace stoker::engine {
namespace {

/// What any rank has seen is seen by all of them.
void share(data::SeenContents& seen, Group& group) {
  MessageWriter own;
  for (const auto& [sample, digest] : seen.seen()) {
    own.add(sample);
    own.add(static_cast<int64_t>(digest));
  }
  for (const std::string& of_rank : group.gather(own.bytes())) {
    for (MessageReader message(of_rank); !message.at_end();) {
      const int64_t sample = message.number();
      seen.add_seen(sample, static_cast<uint64_t>(message.number()));
    }
  }
}

}  // namespace

SplitOverlap::SplitOverlap(std::shared_ptr<const data::Source>& training,
                           std::shared_ptr<const data::Source>& validation)
    : seen_in_training_(std::make_shared<data::SeenContents>(training->size())),
      seen_in_validation_(std::make_shared<data::SeenContents>(validation->size())) {
  training = data::make_watched_source(training, seen_in_training_);
  validation = data::make_watched_source(validation, seen_in_validation_);
}

void SplitOverlap::stop() {
  if (!seen_in_training_) return;
  seen_in_training_->stop();
  seen_in_validation_->stop();
}

std::vector<SharedSample> SplitOverlap::compare(Group& group) {
  if (!seen_in_training_ || seen_in_training_->stopped()) return {};
  stop();
  if (!group.is_alone()) {
    share(*seen_in_training_, group);
    share(*seen_in_validation_, group);
  }
  std::vector<SharedSample> shared;
  for (const auto& [validation, training] : seen_in_validation_->found_in(*seen_in_training_)) {
    shared.push_back({validation, training});
  }
  return shared;
}

}  // namespace stoker::engine
