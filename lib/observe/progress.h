// SPDX-License-Identifier: Apache-2.0
// Training as a person follows it: a live line on a terminal, plain lines elsewhere, one line per epoch.
#pragma once

#include <chrono>
#include <string>

#include "engine/events.h"
#include "observe/console.h"
#include "observe/resources.h"

namespace stoker::observe {

class Progress : public engine::Observer {
 public:
  explicit Progress(Console& console);

  void on_start(const engine::StartEvent& event) override;
  void on_update(const engine::UpdateEvent& event) override;
  void on_report(const engine::ReportEvent& event) override;
  void on_evaluation(int64_t images_done, int64_t images_total) override;
  void on_epoch(const engine::EpochEvent& event) override;
  void on_checkpoint(const engine::CheckpointEvent& event) override;
  void on_finish(const engine::FinishEvent& event) override;

 private:
  std::string position_text(const engine::UpdateEvent& at) const;
  bool time_to_redraw();
  void redraw(const engine::UpdateEvent& at);

  Console& console_;
  ResourceMeter meter_;
  engine::StartEvent start_;
  std::string last_report_;     ///< the measured part of the last report
  std::string last_resources_ = "CPU: n/a";
  std::chrono::steady_clock::time_point begin_, last_redraw_, last_meter_;
};

/// "top1 85.2%", "mae 4.21 degrees": name, value and unit.
std::string metric_text(const engine::Metric& metric, int percent_digits);
/// The measured part of a report: "loss 0.4123  top1 85.2%  lr 0.1  5,432 images/s  data wait 1%".
std::string report_text(const engine::ReportEvent& event);

}  // namespace stoker::observe
