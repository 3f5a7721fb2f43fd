// SPDX-License-Identifier: Apache-2.0
// Whether a run's updates are replayed from a record, decided from what they are measured to take. Without LibTorch.
#pragma once

#include "engine/run/step_times.h"

namespace stoker::engine {

/// Graphs spare launches, so they are tried where these take the time, once; and kept where updates become shorter by a
/// tenth at least, since a record takes memory.
class GraphTrial {
 public:
  /// Looks at a window of updates; one of too few is ignored. Returns whether those that follow are replayed.
  bool judge(const StepTimings& window);
  /// Whether both ways have been measured: stays true.
  bool is_decided() const { return state_ == State::decided; }
  /// Seconds per update, as measured; 0 where not yet.
  double launched_seconds() const { return launched_seconds_; }
  double replayed_seconds() const { return replayed_seconds_; }

 private:
  enum class State { watching, recording, comparing, decided };

  State state_ = State::watching;
  bool uses_graphs_ = false;
  double launched_seconds_ = 0, replayed_seconds_ = 0;
};

}  // namespace stoker::engine
