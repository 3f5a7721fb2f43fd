// SPDX-License-Identifier: Apache-2.0
#include "observe/observers/progress.h"

#include <algorithm>
#include <cmath>

#include "core/format.h"
#include "core/log.h"
#include "core/time/clock.h"
#include "observe/diagnosis/diagnosis.h"
#include "observe/diagnosis/time_figures.h"

namespace stoker::observe {
namespace {

constexpr int kEpochColumns = 77;     // behind two spaces, on a terminal of 80
constexpr size_t kShownMetrics = 2;   // of an evaluation; the others stand in the files
constexpr double kMuchWaiting = 0.2;  // share of the time; from there on a terminal shows it in colour
constexpr const char *kBold = "1", *kGreen = "32", *kYellow = "33";

using Clock = std::chrono::steady_clock;
using core::format;

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

std::vector<LinePart> joined(std::vector<LinePart> parts, const std::vector<LinePart>& more) {
  parts.insert(parts.end(), more.begin(), more.end());
  return parts;
}

/// The parts of a line by importance, for narrow terminals.
enum Rank {
  kEpoch,
  kLoss,
  kSlowed,
  kBar,
  kRate,
  kEta,
  kUpdate,
  kDataWait,
  kExchange,
  kSlowestRank,
  kUpdateRate,
  kGpu,
  kCpu,
  kMetric,
  kVram,
  kRam,
  kLearningRate,
  kGradient,
  kLossScale,
  kStep,  // long, and the lines of each epoch have it
};

/// "21.7 updates/s", three digits; "" before the first update.
std::string updates_text(const engine::StepTimings& times) {
  const double seconds = times.update.mean_seconds;
  return seconds > 0 ? format("{:.3g} updates/s", 1 / seconds) : "";
}

/// Where the time of an epoch went, the least important last to stay.
std::vector<LinePart> epoch_parts(const engine::EpochEvent& event, const engine::StartEvent& start) {
  std::vector<LinePart> parts = {
      {core::count_text(static_cast<int64_t>(event.images_per_second)) + " " + start.items + "/s" +
           (event.utilization ? format("  MFU {:.0f}%", 100 * *event.utilization) : ""),
       kRate},
      {updates_text(event.times), kUpdateRate},
      {format("data wait {:.0f}%", 100 * event.data_wait_share), kDataWait},
      {format("{} + {} validation", core::duration_text(event.train_seconds), core::duration_text(event.eval_seconds)),
       kLoss}};
  if (event.bad_images > 0) parts.push_back({format("bad images skipped: {}", event.bad_images), kEpoch});
  return event.found.resources ? joined(parts, resource_parts(*event.found.resources)) : parts;
}

LinePart bar_part(int64_t done, int64_t total) {
  return {"", kBar, false, kGreen, total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 0};
}

std::string verdict_and_advice(const engine::Diagnosis& diagnosis) {
  return std::to_string(static_cast<int>(diagnosis.verdict)) + diagnosis.advice;
}

}  // namespace

std::string metric_text(const engine::Metric& metric, int percent_digits) {
  if (std::isnan(metric.value)) return metric.name + " undefined";
  switch (metric.unit) {
    case engine::MetricUnit::percent: return format("{} {:.{}f}%", metric.name, metric.value, percent_digits);
    case engine::MetricUnit::degrees: return format("{} {:.2f} degrees", metric.name, metric.value);
    case engine::MetricUnit::ratio: return format("{} {:.4f}", metric.name, metric.value);
    case engine::MetricUnit::number: break;
  }
  return format("{} {:.5g}", metric.name, metric.value);
}

std::vector<LinePart> report_parts(const engine::ReportEvent& event, const std::string& items) {
  std::vector<LinePart> parts = {
      {format("loss {:.4f}", event.train_loss), kLoss},
      {metric_text(event.train_score, 1), kMetric},
      {format("lr {:.4g}", event.at.learning_rate), kLearningRate},
      {core::count_text(static_cast<int64_t>(event.images_per_second)) + " " + items + "/s", kRate},
      {updates_text(event.times), kUpdateRate},
      {format("data wait {:.0f}%", 100 * event.data_wait_share), kDataWait, false,
       event.data_wait_share >= kMuchWaiting ? kYellow : ""},
      {step_text(event.times), kStep}};
  if (const std::optional<engine::RankSummary> ranks = engine::rank_summary(event.ranks)) {
    parts.insert(parts.end() - 1, {format("exchange {:.0f}%", 100 * ranks->exchange_share), kExchange});
    parts.insert(parts.end() - 1, {format("slowest of {} ranks: {} +{:.0f}%", ranks->ranks, ranks->slowest,
                                          100 * ranks->slowest_excess()),
                                   kSlowestRank});
  }
  if (event.gradient_norm >= 0) parts.push_back({format("grad norm {:.3g}", event.gradient_norm), kGradient});
  if (event.loss_scale > 0) {
    parts.push_back({format("loss scale {:g}  skipped {}", event.loss_scale, event.skipped_updates), kLossScale});
  }
  return parts;
}

std::vector<LinePart> resource_parts(const ResourceReading& reading) {
  const ResourceTexts texts = resource_texts(reading);
  return {{texts.gpu, kGpu, /*bar=*/true},
          {texts.vram, kVram, true},
          {texts.cpu, kCpu, true},
          {texts.ram, kRam, true},
          {texts.slowed, kSlowed, true, kYellow}};
}

Progress::Progress(Console& console, ResourceSampler* resources) : console_(console), resources_(resources) {
  if (!resources_ || !console_.is_live()) return;
  resources_->set_callback([this](const ResourceReading& reading) {
    const std::lock_guard<std::mutex> lock(mutex_);
    reading_ = reading;
    if (!front_.empty()) console_.show_live(joined(front_, resource_parts(reading_)));
  });
}

Progress::~Progress() {
  if (resources_) resources_->set_callback({});
}

void Progress::on_start(const engine::StartEvent& event) {
  start_ = event;
  begin_ = Clock::now();
}

std::vector<LinePart> Progress::position_parts(const engine::UpdateEvent& at) const {
  const int64_t done_here = at.updates - start_.start_updates;
  const int64_t left = start_.total_updates - at.updates;
  const double seconds = core::seconds_since(begin_);
  const std::string eta =
      done_here > 0 ? "ETA " + core::duration_text(seconds / static_cast<double>(done_here) * static_cast<double>(left))
                    : "";
  return {{format("epoch {}/{}", at.epoch + 1, start_.epochs), kEpoch, false, kBold},
          bar_part(at.update_in_epoch, start_.updates_per_epoch),
          {format("update {}/{}", at.update_in_epoch, start_.updates_per_epoch), kUpdate},
          {eta, kEta}};
}

bool Progress::is_redraw_due() {
  if (!console_.is_live()) return false;
  const auto now = Clock::now();
  if (seconds_between(last_redraw_, now) < 0.1) return false;
  last_redraw_ = now;
  return true;
}

void Progress::show(std::vector<LinePart> front) {
  const std::lock_guard<std::mutex> lock(mutex_);
  front_ = std::move(front);
  console_.show_live(resources_ ? joined(front_, resource_parts(reading_)) : front_);
}

void Progress::on_update(const engine::UpdateEvent& event) {
  if (is_redraw_due()) show(joined(position_parts(event), last_report_));
}

void Progress::on_report(const engine::ReportEvent& event) {
  const std::optional<engine::Diagnosis>& found = event.found.diagnosis;
  if (found && found->gain_percent >= kWorthInterrupting)
    logged_ = verdict_and_advice(*found);  // the diagnoser logs it
  last_report_ = report_parts(event, start_.items);
  const std::vector<LinePart> line = joined(position_parts(event.at), last_report_);
  if (console_.is_live()) {
    show(line);
    core::log_debug("{}", whole_line(line));
  } else if (!console_.shows_progress()) {
    core::log_debug("{}", whole_line(line));
  } else {
    const auto& resources = event.found.resources;
    core::log_info("{}", whole_line(resources ? joined(line, resource_parts(*resources)) : line));
  }
}

void Progress::on_evaluation(int64_t images_done, int64_t images_total) {
  if (!is_redraw_due()) return;
  show({{"validating", kEpoch, false, kBold},
        bar_part(images_done, images_total),
        {format("{}/{}", images_done, images_total), kLoss}});
}

void Progress::on_epoch(const engine::EpochEvent& event) {
  clear();  // "validating 80/80" is over
  const std::string place = format("at update {}/{}", event.update_in_epoch, start_.updates_per_epoch);
  const std::string end = event.is_cut_short ? "stopped " + place : event.is_inside ? place : "done";
  std::vector<LinePart> line = {{format("epoch {}/{} {}", event.epoch + 1, start_.epochs, end), 0},
                                {format("train loss {:.4f}", event.train_loss), 4}};
  if (event.has_eval) {
    line.push_back({format("val loss {:.4f}", event.eval_loss), 3});
    for (size_t i = 0; i < std::min<size_t>(kShownMetrics, event.metrics.size()); ++i) {
      const engine::Metric& metric = event.metrics[i];
      if (!is_trivial(metric.name, metric.value)) line.push_back({metric_text(metric, 2), i == 0 ? 2 : 5});
    }
    if (event.is_best) line.push_back({"(best)", 1, false, kGreen});
  }
  console_.log_as(whole_line(line), console_.fitted(line));
  if (event.is_inside) return;
  const std::vector<LinePart> figures = epoch_parts(event, start_);
  console_.log_as("  " + fit_line(figures, kEpochColumns), console_.fitted(figures, "  ", kEpochColumns + 2));
  if (!event.ranks.empty()) core::log_info("  {}", ranks_line(event.ranks));
  const std::string resources = event.found.resources ? resource_text(*event.found.resources) : "";
  if (!resources.empty()) core::log_debug("  {}", resources);
  for (const std::string& times : time_lines(event.times)) core::log_debug("  {}", times);
  if (event.found.diagnosis) log_diagnosis(*event.found.diagnosis);
  if (event.is_cut_short) return;
  if (const std::string drift = drift_.judge(event); !drift.empty()) core::log_warning("slower: {}", drift);
}

/// Again only when what to do has changed.
void Progress::log_diagnosis(const engine::Diagnosis& diagnosis) {
  const std::string what = verdict_and_advice(diagnosis);
  if (what == logged_) {
    core::log_debug("  diagnosis: {}", diagnosis_text(diagnosis));
  } else {
    core::log_info("  diagnosis: {}", diagnosis_text(diagnosis));
  }
  logged_ = what;
}

void Progress::on_checkpoint(const engine::CheckpointEvent& event) {
  core::log_debug("saved {} ({}, {}, training waited {:.1f} ms)", event.path,
                  core::bytes_text(static_cast<double>(event.bytes)), core::duration_text(event.seconds),
                  1e3 * event.stall_seconds);
}

void Progress::on_finish(const engine::FinishEvent&) { clear(); }

void Progress::clear() {
  const std::lock_guard<std::mutex> lock(mutex_);
  front_.clear();
  console_.clear_live();
}

}  // namespace stoker::observe
