// SPDX-License-Identifier: Apache-2.0
#include "engine/run/graph_trial.h"

namespace stoker::engine {
namespace {

constexpr int64_t kUpdates = 20;  // of a window, at least
constexpr double kWorthIt = 0.9;  // of the time of an update

}  // namespace

bool GraphTrial::judge(const StepTimings& window) {
  if (window.updates < kUpdates || state_ == State::decided) return uses_graphs_;
  switch (state_) {
    case State::watching:
      if (!window.host_holds_device_up()) break;
      launched_seconds_ = window.update.mean_seconds;
      uses_graphs_ = true;
      state_ = State::recording;
      break;
    case State::recording:  // the window has warm-up and recording in it
      state_ = State::comparing;
      break;
    default:
      replayed_seconds_ = window.update.mean_seconds;
      uses_graphs_ = replayed_seconds_ <= kWorthIt * launched_seconds_;
      state_ = State::decided;
  }
  return uses_graphs_;
}

}  // namespace stoker::engine
