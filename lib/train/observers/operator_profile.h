// SPDX-License-Identifier: Apache-2.0
// --profile: where the time of updates goes, operator by operator, as two tables in the run directory and the first
// rows of one in the log. What records is engine/device/operator_recorder; when, is decided here.
#pragma once

#include <string>

#include "config/options.h"
#include "engine/device/operator_recorder.h"
#include "engine/run/events.h"

namespace stoker::train {

/// Records five updates, and not the first two of the process; fewer where `length` or the run has fewer. Writes
/// run_dir/operators.csv and operator_shapes.csv at the next report, end of an epoch or end of the run. A failed
/// write is a warning.
class OperatorProfile : public engine::Observer {
 public:
  /// `may_use_events`: see OperatorRecorder.
  OperatorProfile(std::string run_dir, config::Interval length, torch::Device device, bool may_use_events);
  /// For the trainer.
  engine::OperatorRecorder& recorder() { return recorder_; }

  void on_start(const engine::StartEvent& event) override;
  void on_report(const engine::ReportEvent& event) override;
  void on_epoch(const engine::EpochEvent& event) override;
  void on_finish(const engine::FinishEvent& event) override;

 private:
  void write();

  const std::string run_dir_;
  const config::Interval length_;
  engine::OperatorRecorder recorder_;
  bool is_written_ = false;
};

/// A row per operator, times in milliseconds, shares in percent of the times of all rows: RFC 4180. `by`: whether
/// there is a column of shapes; the device's columns are there where it was measured.
std::string operators_csv(const engine::OperatorTable& table, engine::OperatorTable::By by);
/// The first `count` rows for people, under a heading.
std::vector<std::string> operators_text(const engine::OperatorTable& table, size_t count);

}  // namespace stoker::train
