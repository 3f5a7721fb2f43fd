// SPDX-License-Identifier: Apache-2.0
// Training as a person follows it: a live line on a terminal, plain lines elsewhere, one line per epoch.
#pragma once

#include <chrono>
#include <mutex>
#include <vector>

#include "engine/run/events.h"
#include "observe/diagnosis/drift.h"
#include "observe/observers/console.h"
#include "observe/resources/resource_sampler.h"

namespace stoker::observe {

/// Called on the training thread; the resources of the live line are renewed on the sampler's, so that it follows a
/// resized terminal even where one update takes minutes.
class Progress : public engine::Observer {
 public:
  /// `resources`: of the live line, between reports; may be absent, else outlives this.
  explicit Progress(Console& console, ResourceSampler* resources = nullptr);
  ~Progress() override;
  Progress& operator=(Progress&&) = delete;  // not copied, not moved

  void on_start(const engine::StartEvent& event) override;
  void on_update(const engine::UpdateEvent& event) override;
  void on_report(const engine::ReportEvent& event) override;
  void on_evaluation(int64_t images_done, int64_t images_total) override;
  void on_epoch(const engine::EpochEvent& event) override;
  void on_checkpoint(const engine::CheckpointEvent& event) override;
  void on_finish(const engine::FinishEvent& event) override;

 private:
  std::vector<LinePart> position_parts(const engine::UpdateEvent& at) const;
  bool is_redraw_due();
  void log_diagnosis(const engine::Diagnosis& diagnosis);
  void show(std::vector<LinePart> front);
  void clear();

  Console& console_;
  ResourceSampler* const resources_;
  engine::StartEvent start_;
  std::vector<LinePart> last_report_;  ///< the measured part of the last report
  DriftWatch drift_;
  std::string logged_;  ///< verdict and advice of the last diagnosis
  std::chrono::steady_clock::time_point begin_, last_redraw_;
  std::mutex mutex_;             ///< guards what follows
  std::vector<LinePart> front_;  ///< parts of the live line: all but the resources
  ResourceReading reading_;
};

/// "top1 85.2%", "mae 4.21 degrees": name, value and unit.
std::string metric_text(const engine::Metric& metric, int percent_digits);
/// Whether a metric may be left out of a line: a full top5, as five classes or fewer have it.
inline bool is_trivial(const std::string& name, double value) { return name == "top5" && value >= 100; }
/// The measured part of a report: "loss 0.4123  top1 85.2%  lr 0.1  5,432 images/s  data wait 1%".
std::vector<LinePart> report_parts(const engine::ReportEvent& event, const std::string& items = "images");
/// GPU, VRAM, CPU and RAM, where available.
std::vector<LinePart> resource_parts(const ResourceReading& reading);

}  // namespace stoker::observe
