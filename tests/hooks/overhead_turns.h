// SPDX-License-Identifier: Apache-2.0
// For scripts/bench/overhead.py: a run is instrumented in one turn of updates and not in the next, within one process,
// and the CPU time of each turn is logged. Two processes differ by more than that costs; neighbouring turns do not.
#pragma once

#include <chrono>
#include <cstdint>

#include "engine/run/events.h"

namespace stoker::hooks {

/// Updates of a turn, from STOKER_TEST_UNINSTRUMENTED_TURNS; 0 where it is not set. At least 2, else an error.
int64_t updates_of_a_turn();

/// Passes on what happens in every other turn; in those between, nobody listens and no account is kept. A turn ends
/// half a turn after a multiple of its length, so that what comes at such multiples lies in its middle.
class OverheadTurns : public engine::Observer {
 public:
  OverheadTurns(engine::Observer& observers, int64_t updates);
  ~OverheadTurns() override;                           ///< instrumented again
  OverheadTurns& operator=(OverheadTurns&&) = delete;  // not copied, not moved

  void on_start(const engine::StartEvent& event) override;
  void on_update(const engine::UpdateEvent& event) override;
  void on_digest(const engine::DigestEvent& event) override { observers_.on_digest(event); }
  void on_report(const engine::ReportEvent& event) override;
  void on_epoch(const engine::EpochEvent& event) override;
  void on_checkpoint(const engine::CheckpointEvent& event) override;
  void on_finish(const engine::FinishEvent& event) override;

 private:
  void end_turn();
  void begin_turn();

  engine::Observer& observers_;
  const int64_t updates_;
  std::chrono::steady_clock::time_point begin_;
  double cpu_seconds_ = 0;  ///< CPU time of the training thread when the turn began
};

}  // namespace stoker::hooks
