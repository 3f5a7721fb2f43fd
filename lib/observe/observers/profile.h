// SPDX-License-Identifier: Apache-2.0
// --profile: records the start of a run as a trace and writes it to the run directory. What is traced, the
// parts that do it record themselves (core/time/trace.h).
#pragma once

#include <chrono>
#include <string>

#include "config/options.h"
#include "engine/run/events.h"

namespace stoker::observe {

/// First in a list of observers: it records from on_start() until `length` is over, and writes
/// run_dir/profile.json at the next report, end of an epoch or end of the run, when a device has passed all
/// that was recorded. A failed write is a warning.
class Profile : public engine::Observer {
 public:
  Profile(const std::string& run_dir, config::Interval length);

  void on_start(const engine::StartEvent& event) override;
  void on_update(const engine::UpdateEvent& event) override;
  void on_report(const engine::ReportEvent& event) override;
  void on_epoch(const engine::EpochEvent& event) override;
  void on_finish(const engine::FinishEvent& event) override;

 private:
  void write();

  const std::string path_;
  const config::Interval length_;
  std::chrono::steady_clock::time_point begin_;
  int64_t first_update_ = 0, first_epoch_ = 0;
  enum class State { before, recording, recorded, written } state_ = State::before;
};

}  // namespace stoker::observe
