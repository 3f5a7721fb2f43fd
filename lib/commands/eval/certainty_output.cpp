// SPDX-License-Identifier: Apache-2.0
#include "commands/eval/certainty_output.h"

#include <algorithm>
#include <cmath>

#include "config/task_facts.h"
#include "core/format.h"
#include "core/text/csv.h"
#include "observe/observers/progress.h"

namespace stoker::train {
namespace {

using core::format;
using core::Json;

constexpr size_t kShownLabels = 20;

engine::MetricUnit unit_of(const engine::EvalReport& report, const std::string& name) {
  for (const engine::Metric& metric : report.metrics) {
    if (metric.name == name) return metric.unit;
  }
  return engine::MetricUnit::ratio;  // the loss
}

std::string number_text(double value, engine::MetricUnit unit) {
  if (std::isnan(value)) return "n/a";
  switch (unit) {
    case engine::MetricUnit::percent:
    case engine::MetricUnit::degrees: return format("{:.2f}", value);
    case engine::MetricUnit::ratio: return format("{:.4f}", value);
    case engine::MetricUnit::number: break;
  }
  return format("{:.4g}", value);
}

const char* unit_text(engine::MetricUnit unit) {
  return unit == engine::MetricUnit::percent ? "%" : unit == engine::MetricUnit::degrees ? " degrees" : "";
}

/// A figure that is undefined here has no interval, nor has a bootstrap whose resamples all give one value, as with
/// hardly a sample wrong.
bool is_known(const statistics::Interval& interval) { return interval.low < interval.high; }

std::string interval_text(const statistics::Interval& interval, engine::MetricUnit unit) {
  if (!is_known(interval)) return "n/a";
  return format("{} to {}", number_text(interval.low, unit), number_text(interval.high, unit));
}

std::string calibration_line(const statistics::Calibration& calibration, bool is_of_labels) {
  const bool is_finding = calibration.ece > calibration.chance_ece;
  const char* const verdict = !is_finding                                  ? "not significant"
                              : calibration.confidence > calibration.right ? "overconfident"
                              : calibration.confidence < calibration.right ? "underconfident"
                                                                           : "off";
  const char* const answers =
      is_of_labels ? "mean probability {:.1f}%, positives {:.1f}%" : "mean confidence {:.1f}%, accuracy {:.1f}%";
  return format("calibration  {}; ECE {:.2f} points, {} (perfectly calibrated: up to {:.2f})",
                format(answers, 100 * calibration.confidence, 100 * calibration.right), 100 * calibration.ece, verdict,
                100 * calibration.chance_ece);
}

std::string threshold_text(const char* figure, const statistics::BestThreshold& best) {
  return format("{:.3g} for {} ({:.4f} instead of {:.4f})", best.threshold, figure, best.value, best.value_now);
}

std::string threshold_line(const statistics::LabelThresholds& of, const std::string& name) {
  if (std::isnan(of.f1.threshold))
    return format("threshold    {}: all samples have the same answer, so any threshold is right", name);
  return format("threshold    {}: {}, {}", name, threshold_text("f1", of.f1),
                threshold_text("balanced accuracy", of.balanced_accuracy));
}

Json threshold_json(const statistics::BestThreshold& best) {
  return {{"threshold", best.threshold}, {"value", best.value}, {"value_now", best.value_now}};
}

Json calibration_json(const statistics::Calibration& calibration) {
  Json json = {{"ece", calibration.ece},
               {"chance_ece", calibration.chance_ece},
               {"confidence", calibration.confidence},
               {"right", calibration.right},
               {"bins", Json::array()}};
  for (const statistics::ReliabilityBin& bin : calibration.bins) {
    json["bins"].push_back({{"low", bin.low},
                            {"high", bin.high},
                            {"answers", bin.answers},
                            {"confidence", bin.confidence},
                            {"right", bin.right},
                            {"right_low", bin.right_interval.low},
                            {"right_high", bin.right_interval.high}});
  }
  return json;
}

std::string difference_line(const statistics::Comparison::Difference& metric, engine::MetricUnit unit,
                            const std::string& first, const std::string& second) {
  const std::string interval = format("(95 %: {})", interval_text(metric.interval, unit));
  const char* const points = unit == engine::MetricUnit::percent ? " points" : unit_text(unit);
  if (std::isnan(metric.p_value)) {
    return format("  {:<12} not tested: {} minus {} is {}{}", metric.name, first, second,
                  number_text(metric.difference(), unit), points);
  }
  const int winner = metric.winner();
  if (winner == 0) {
    return format("  {:<12} no significant difference: {} minus {} is {}{} {}, p {:.2g}", metric.name, first, second,
                  number_text(metric.difference(), unit), points, interval, metric.p_value);
  }
  const statistics::Interval& of = metric.interval;
  const statistics::Interval size =
      of.low > 0 ? of : statistics::Interval{-of.high, -of.low};  // by how much, without a sign
  return format("  {:<12} {} beats {} by {}{} (95 %: {}), p {:.2g}", metric.name, winner > 0 ? first : second,
                winner > 0 ? second : first, number_text(std::abs(metric.difference()), unit), points,
                interval_text(size, unit), metric.p_value);
}

}  // namespace

std::vector<std::string> certainty_lines(const statistics::Certainty& certainty, const engine::EvalReport& report,
                                         const std::vector<std::string>& label_names) {
  std::string intervals = format("{:.0f} % confidence intervals:", 100 * certainty.settings.level);
  for (const statistics::MetricEstimate& metric : certainty.metrics) {
    if (!is_known(metric.interval) || observe::is_trivial(metric.name, metric.value)) continue;
    const engine::MetricUnit unit = unit_of(report, metric.name);
    intervals += format("  {} {}{}", metric.name, interval_text(metric.interval, unit), unit_text(unit));
  }
  std::vector<std::string> lines = {intervals};
  if (certainty.calibration) lines.push_back(calibration_line(*certainty.calibration, !certainty.thresholds.empty()));
  for (size_t i = 0; i < std::min(kShownLabels, certainty.thresholds.size()); ++i) {
    lines.push_back(threshold_line(certainty.thresholds[i], label_names[i]));
  }
  if (!certainty.thresholds.empty()) {
    lines.push_back(
        "             best on these images, so optimistic; train eval --calibrate fits and stores thresholds");
  }
  return lines;
}

std::vector<std::string> comparison_lines(const statistics::Comparison& comparison, const engine::EvalReport& report,
                                          const std::string& first, const std::string& second) {
  std::vector<std::string> lines = {
      format("{} against {}, on the same {} images", first, second, core::count_text(comparison.samples))};
  if (comparison.left_out > 0) lines.back() += format("; {} that one of them lacks are left out", comparison.left_out);
  for (const auto& metric : comparison.metrics) {
    if (observe::is_trivial(metric.name, metric.first) && observe::is_trivial(metric.name, metric.second)) continue;
    lines.push_back(difference_line(metric, unit_of(report, metric.name), first, second));
  }
  return lines;
}

core::Json certainty_json(const statistics::Certainty& certainty, const std::vector<std::string>& label_names) {
  Json json = {{"images", certainty.samples},
               {"level", certainty.settings.level},
               {"resamples", certainty.settings.resamples},
               {"metrics", Json::array()}};
  for (const statistics::MetricEstimate& metric : certainty.metrics) {
    json["metrics"].push_back(
        {{"name", metric.name}, {"value", metric.value}, {"low", metric.interval.low}, {"high", metric.interval.high}});
  }
  json["calibration"] = certainty.calibration ? calibration_json(*certainty.calibration) : Json(nullptr);
  json["thresholds"] = Json::array();
  for (size_t i = 0; i < certainty.thresholds.size(); ++i) {
    json["thresholds"].push_back({{"label", core::printable(label_names[i])},
                                  {"f1", threshold_json(certainty.thresholds[i].f1)},
                                  {"accuracy", threshold_json(certainty.thresholds[i].accuracy)},
                                  {"balanced_accuracy", threshold_json(certainty.thresholds[i].balanced_accuracy)}});
  }
  return json;
}

/// Null where nothing was tested.
static Json winner_json(const statistics::Comparison::Difference& metric) {
  if (std::isnan(metric.p_value)) return nullptr;
  return metric.winner() > 0 ? "first" : metric.winner() < 0 ? "second" : "none";
}

core::Json comparison_json(const statistics::Comparison& comparison, const std::string& second) {
  Json json = {{"checkpoint", core::printable(second)},
               {"images", comparison.samples},
               {"left_out", comparison.left_out},
               {"metrics", Json::array()}};
  for (const auto& metric : comparison.metrics) {
    json["metrics"].push_back({{"name", metric.name},
                               {"first", metric.first},
                               {"second", metric.second},
                               {"difference", metric.difference()},
                               {"low", metric.interval.low},
                               {"high", metric.interval.high},
                               {"p", metric.p_value},
                               {"winner", winner_json(metric)}});
  }
  return json;
}

core::Json curves_json(const statistics::EvaluatedSamples& samples, const std::vector<std::string>& names) {
  constexpr size_t kMostLabels = 20;
  constexpr int64_t kMostTargets = 12, kMostSamples = 300;
  const auto rounded = [](std::vector<double> values) {
    for (double& value : values) value = std::round(value * 1e4) / 1e4;
    return values;
  };
  const auto short_number = [](double value) { return std::stod(format("{:.5g}", value)); };
  const bool has_numbers = config::has_scaled_targets(samples.task);
  const bool has_labels = !has_numbers && samples.task != config::TaskKind::multiclass;
  Json json = {
      {"threshold", has_labels && samples.threshold.size() == 1 ? Json(samples.threshold.front()) : Json(nullptr)},
      {"labels", Json::array()},
      {"targets", Json::array()}};
  if (has_labels) {
    for (const statistics::LabelCurve& curve : statistics::label_curves(samples, kMostLabels)) {
      const std::string name =
          curve.label < 0 ? "all labels" : core::printable(names[static_cast<size_t>(curve.label)]);
      json["labels"].push_back({{"label", name},
                                {"positives", curve.positives},
                                {"recall", rounded(curve.recall)},
                                {"precision", rounded(curve.precision)},
                                {"threshold", rounded(curve.threshold)},
                                {"f1", rounded(curve.f1)}});
    }
  }
  const int64_t shown = std::min(kMostSamples, samples.count());
  for (int64_t target = 0; has_numbers && target < std::min(kMostTargets, samples.columns); ++target) {
    std::vector<double> truth, predicted;
    for (int64_t i = 0; i < shown; ++i) {
      const auto at = static_cast<size_t>(i * samples.count() / shown * samples.columns + target);
      if (!std::isfinite(samples.truth[at]) || !std::isfinite(samples.outputs[at])) continue;
      truth.push_back(short_number(samples.truth[at]));
      predicted.push_back(short_number(samples.outputs[at]));
    }
    if (truth.empty()) continue;
    json["targets"].push_back(
        {{"target", core::printable(names[static_cast<size_t>(target)])}, {"true", truth}, {"predicted", predicted}});
  }
  return json;
}

std::string reliability_csv(const statistics::Calibration& calibration) {
  std::string csv =
      core::csv_row({"confidence_from", "confidence_to", "answers", "confidence", "right", "right_low", "right_high"}) +
      "\n";
  const auto fraction = [](double value) { return format("{:.6f}", value); };
  for (const statistics::ReliabilityBin& bin : calibration.bins) {
    // Without answers there is nothing to report.
    const auto of_answers = [&](double value) { return bin.answers == 0 ? "" : fraction(value); };
    csv += core::csv_row({fraction(bin.low), fraction(bin.high), format("{}", bin.answers), of_answers(bin.confidence),
                          of_answers(bin.right), of_answers(bin.right_interval.low),
                          of_answers(bin.right_interval.high)}) +
           "\n";
  }
  return csv;
}

}  // namespace stoker::train
