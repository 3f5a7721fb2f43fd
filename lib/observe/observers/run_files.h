// SPDX-License-Identifier: Apache-2.0
// The files of a run that people and programs read while and after it runs: summary.csv, metrics.jsonl and
// status.json. Formats: docs/reference/run-directory.md.
#pragma once

#include <string>

#include "core/system/file_system.h"
#include "core/text/json.h"
#include "engine/run/events.h"

namespace stoker::observe {

/// Creates, or on resume cuts back, the files under `run_dir`. Losing a row is an error (Error{io}), since these
/// files are results; status.json is only news, so errors of it are ignored. A run that ends without on_finish()
/// leaves the state "failed" in status.json when this is destroyed.
class RunFiles : public engine::Observer {
 public:
  explicit RunFiles(std::string run_dir, core::FileSystem& files = core::posix_file_system());
  ~RunFiles() override;
  RunFiles& operator=(RunFiles&&) = delete;  // not copied, not moved

  void on_start(const engine::StartEvent& event) override;
  void on_digest(const engine::DigestEvent& event) override;
  void on_report(const engine::ReportEvent& event) override;
  void on_epoch(const engine::EpochEvent& event) override;
  void on_checkpoint(const engine::CheckpointEvent& event) override;
  void on_finish(const engine::FinishEvent& event) override;

 private:
  void append_event(core::Json event) const;
  void write_status(const std::string& state, const core::Json& fields);

  std::string run_dir_;
  core::FileSystem& files_;
  engine::StartEvent start_;
  bool is_training_ = false;  ///< between on_start() and on_finish()
  core::Json last_fields_;    ///< last content of status.json
  size_t summary_columns_ = 0;
};

/// First line of summary.csv. timm's columns first; eight columns are clocks, which a resumed run does not repeat. The
/// first two metrics of the task stand before the learning rate, the others at the end.
std::string summary_header(const std::vector<engine::Metric>& metrics);
/// The rows of a summary.csv that belong to the first `epochs_done` epochs, and those of evaluations inside the next
/// one up to `evaluated_updates`, the last that were evaluated because it was due: later rows lose an evaluation that
/// only a stop caused. Under `header`, to which columns are added that only the file has; values stay under
/// the names that they had. A half-written last line is dropped, a row that cannot be read is left out with a warning
/// that names `path`. Epochs count from 1; rows of a file that counts from 0, as older programs wrote it, are numbered
/// again.
std::string summary_until(const std::string& text, const std::string& header, int64_t epochs_done,
                          int64_t evaluated_updates = -1, const std::string& path = "summary.csv");

}  // namespace stoker::observe
