// SPDX-License-Identifier: Apache-2.0
// The files of a run that people and programs read while and after it runs: summary.csv, metrics.jsonl and
// status.json. Formats: docs/run-directory.md.
#pragma once

#include <string>

#include "core/text/json.h"
#include "engine/run/events.h"

namespace stoker::observe {

/// Creates, or on resume cuts back, the files under `run_dir`. Losing a row is an error (Error{io}), since these
/// files are results; status.json is only news, so trouble with it is ignored.
class RunFiles : public engine::Observer {
 public:
  explicit RunFiles(std::string run_dir);

  void on_start(const engine::StartEvent& event) override;
  void on_report(const engine::ReportEvent& event) override;
  void on_epoch(const engine::EpochEvent& event) override;
  void on_checkpoint(const engine::CheckpointEvent& event) override;
  void on_finish(const engine::FinishEvent& event) override;

 private:
  void append_event(core::Json event) const;
  void write_status(const std::string& state, core::Json fields) const;

  std::string run_dir_;
  engine::StartEvent start_;
};

/// First line of summary.csv. timm's columns first; seven columns are clocks, which a resumed run does not repeat. The
/// first two metrics of the task stand before the learning rate, the others at the end.
std::string summary_header(const std::vector<engine::Metric>& metrics);
/// The rows of a summary.csv that belong to epochs before `start_epoch`, under `header`; a half-written last line is
/// dropped.
std::string summary_until(const std::string& text, const std::string& header, int64_t start_epoch);

}  // namespace stoker::observe
