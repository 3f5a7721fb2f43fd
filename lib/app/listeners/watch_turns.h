// SPDX-License-Identifier: Apache-2.0
// For scripts/bench/overhead.py: has a run watched in one turn and not in the next, within one process, and logs
// the CPU time of each. Two processes differ by more than watching costs; neighbouring turns do not.
#pragma once

#include <chrono>
#include <cstdint>

#include "engine/run/events.h"

namespace stoker::app {

/// Updates of a turn, from STOKER_TEST_WATCH_TURNS; 0 where it is not set. At least 2, else an error.
int64_t watch_turns_for_tests();

/// Passes on what happens in every other turn; in those between, nobody listens and no account is kept. A turn ends
/// half a turn after a multiple of its length, so that what comes at such multiples lies in its middle.
class WatchTurns : public engine::Observer {
 public:
  WatchTurns(engine::Observer& watcher, int64_t updates);
  ~WatchTurns() override;  ///< watched again
  WatchTurns(const WatchTurns&) = delete;
  WatchTurns& operator=(const WatchTurns&) = delete;

  void on_start(const engine::StartEvent& event) override;
  void on_update(const engine::UpdateEvent& event) override;
  void on_report(const engine::ReportEvent& event) override;
  void on_epoch(const engine::EpochEvent& event) override;
  void on_checkpoint(const engine::CheckpointEvent& event) override;
  void on_finish(const engine::FinishEvent& event) override;

 private:
  void end_turn();
  void begin_turn();

  engine::Observer& watcher_;
  const int64_t updates_;
  std::chrono::steady_clock::time_point begin_;
  double cpu_seconds_ = 0;  ///< of the training thread, when the turn began
};

}  // namespace stoker::app
