// SPDX-License-Identifier: Apache-2.0
#include "observe/progress.h"

#include <algorithm>

#include "core/format.h"
#include "core/log.h"

namespace stoker::observe {
namespace {

constexpr size_t kShownMetrics = 2;  // of an evaluation; the others stand in the files

using Clock = std::chrono::steady_clock;
using core::format;

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace

std::string metric_text(const engine::Metric& metric, int percent_digits) {
  switch (metric.unit) {
    case engine::MetricUnit::percent:
      return format("{} {:.{}f}%", metric.name, metric.value, percent_digits);
    case engine::MetricUnit::degrees:
      return format("{} {:.2f} degrees", metric.name, metric.value);
    case engine::MetricUnit::ratio:
      return format("{} {:.4f}", metric.name, metric.value);
    case engine::MetricUnit::number:
      break;
  }
  return format("{} {:.5g}", metric.name, metric.value);
}

std::string report_text(const engine::ReportEvent& event) {
  std::string text = format("loss {:.4f}  {}  lr {:.4g}  {} images/s  data wait {:.0f}%", event.train_loss,
                            metric_text(event.train_score, 1), event.at.learning_rate,
                            core::count_text(static_cast<int64_t>(event.images_per_second)),
                            100 * event.data_wait_share);
  if (event.gradient_norm >= 0) text += format("  grad norm {:.3g}", event.gradient_norm);
  if (event.loss_scale > 0) text += format("  loss scale {:g}  skipped {}", event.loss_scale, event.skipped_updates);
  return text;
}

Progress::Progress(Console& console) : console_(console) {}

void Progress::on_start(const engine::StartEvent& event) {
  start_ = event;
  begin_ = last_meter_ = Clock::now();
}

std::string Progress::position_text(const engine::UpdateEvent& at) const {
  const int64_t done_here = at.updates - start_.start_updates;
  const int64_t left = start_.total_updates - at.updates;
  const double seconds = seconds_between(begin_, Clock::now());
  const std::string eta =
      done_here > 0 ? core::duration_text(seconds / static_cast<double>(done_here) * static_cast<double>(left)) : "n/a";
  return format("epoch {}/{}  update {}/{}  ETA {}", at.epoch + 1, start_.epochs, at.update_in_epoch,
                start_.updates_per_epoch, eta);
}

bool Progress::time_to_redraw() {
  if (!console_.is_live()) return false;
  const auto now = Clock::now();
  if (seconds_between(last_redraw_, now) < 0.1) return false;
  last_redraw_ = now;
  return true;
}

void Progress::redraw(const engine::UpdateEvent& at) {
  if (seconds_between(last_meter_, Clock::now()) >= 1) {
    last_resources_ = meter_.text();
    last_meter_ = Clock::now();
  }
  console_.show_live(position_text(at) + "  " + last_report_ + (last_report_.empty() ? "" : "  ") + last_resources_);
}

void Progress::on_update(const engine::UpdateEvent& event) {
  if (time_to_redraw()) redraw(event);
}

void Progress::on_report(const engine::ReportEvent& event) {
  last_report_ = report_text(event);
  const std::string line = position_text(event.at) + "  " + last_report_;
  if (console_.is_live()) {
    redraw(event.at);
    core::log_debug("{}", line);
  } else {
    core::log_info("{}", line);
  }
}

void Progress::on_evaluation(int64_t images_done, int64_t images_total) {
  if (time_to_redraw()) console_.show_live(format("validating  {}/{}", images_done, images_total));
}

void Progress::on_epoch(const engine::EpochEvent& event) {
  std::string line = format("epoch {}/{} done  train loss {:.4f}", event.epoch + 1, start_.epochs, event.train_loss);
  if (event.has_eval) {
    line += format("  val loss {:.4f}", event.eval_loss);
    for (size_t i = 0; i < std::min<size_t>(kShownMetrics, event.metrics.size()); ++i) {
      line += "  " + metric_text(event.metrics[i], 2);
    }
    if (event.is_best) line += "  (best)";
  }
  line += format("  {} images/s  data wait {:.0f}%  {} + {} validation",
                 core::count_text(static_cast<int64_t>(event.images_per_second)), 100 * event.data_wait_share,
                 core::duration_text(event.train_seconds), core::duration_text(event.eval_seconds));
  if (event.bad_images > 0) line += format("  bad images skipped: {}", event.bad_images);
  core::log_info("{}", line);
}

void Progress::on_checkpoint(const engine::CheckpointEvent& event) {
  core::log_debug("saved {} ({}, {})", event.path, core::bytes_text(static_cast<double>(event.bytes)),
                  core::duration_text(event.seconds));
}

void Progress::on_finish(const engine::FinishEvent&) { console_.clear_live(); }

}  // namespace stoker::observe
