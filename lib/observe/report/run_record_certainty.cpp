// SPDX-License-Identifier: Apache-2.0
// eval/certainty.json and eval/curves.json, as `train eval --output` writes them, read back.
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/format.h"
#include "core/system/file.h"
#include "core/text/json.h"
#include "observe/report/run_record_files.h"

namespace stoker::observe {
namespace {

using core::Json;

constexpr uint64_t kMaxCertaintyBytes = 16 << 20;
constexpr size_t kMaxThresholds = 1000, kMaxCurvePoints = 1000, kMaxTargets = 12;

double number_of(const Json& object, const char* name) {
  const Json value = object.value(name, Json());
  return value.is_number() ? value.get<double>() : std::nan("");
}

SureFigure figure_of(const Json& metric, const char* value) {
  return {metric.at("name").get<std::string>(), number_of(metric, value), number_of(metric, "low"),
          number_of(metric, "high")};
}

SureRecord sure_of(const Json& file) {
  SureRecord sure;
  sure.images = file.at("images").get<int64_t>();
  sure.level = number_of(file, "level");
  for (const Json& metric : file.at("metrics")) sure.figures.push_back(figure_of(metric, "value"));
  if (const Json calibration = file.value("calibration", Json()); calibration.is_object()) {
    sure.ece = number_of(calibration, "ece");
    sure.chance_ece = number_of(calibration, "chance_ece");
    for (const Json& bin : calibration.at("bins")) {
      const auto answers = bin.at("answers").get<int64_t>();
      if (answers < 1) continue;
      sure.reliability.push_back({answers, number_of(bin, "confidence"), number_of(bin, "right"),
                                  number_of(bin, "right_low"), number_of(bin, "right_high")});
    }
  }
  for (const Json& label : file.value("thresholds", Json::array())) {
    const Json& f1 = label.at("f1");
    if (sure.thresholds.size() < kMaxThresholds) {
      sure.thresholds.push_back({label.at("label").get<std::string>(), number_of(f1, "threshold"),
                                 number_of(f1, "value"), number_of(f1, "value_now")});
    }
  }
  if (const Json against = file.value("against", Json()); against.is_object()) {
    sure.against = against.at("checkpoint").get<std::string>();
    for (const Json& metric : against.at("metrics")) sure.better.push_back(figure_of(metric, "difference"));
  }
  return sure;
}

/// Numbers that are finite; throws where they are none, or too many.
std::vector<double> numbers_of(const Json& object, const char* name) {
  const auto numbers = object.at(name).get<std::vector<double>>();
  const bool all_finite =
      std::all_of(numbers.begin(), numbers.end(), [](double value) { return std::isfinite(value); });
  if (numbers.empty() || numbers.size() > kMaxCurvePoints || !all_finite)
    throw core::Error(core::ErrorKind::data, "no curve");
  return numbers;
}

void require_curve(const std::vector<double>& x, const std::vector<double>& y) {
  if (x.size() != y.size() || !std::is_sorted(x.begin(), x.end())) throw core::Error(core::ErrorKind::data, "no curve");
}

void add_curves(const Json& file, RunRecord& record) {
  for (const Json& label : file.at("labels")) {
    if (record.label_curves.size() == kMaxThresholds) break;
    LabelCurve curve = {label.at("label").get<std::string>(), numbers_of(label, "recall"),
                        numbers_of(label, "precision"), numbers_of(label, "threshold"), numbers_of(label, "f1")};
    require_curve(curve.recall, curve.precision);
    require_curve(curve.threshold, curve.f1);
    record.label_curves.push_back(std::move(curve));
  }
  if (const Json& used = file.at("threshold"); used.is_number()) record.threshold = used.get<double>();
  for (const Json& target : file.at("targets")) {
    if (record.number_pairs.size() == kMaxTargets) break;
    NumberPairs pairs = {target.at("target").get<std::string>(), numbers_of(target, "true"),
                         numbers_of(target, "predicted")};
    if (pairs.truth.size() != pairs.predicted.size()) throw core::Error(core::ErrorKind::data, "no pairs");
    record.number_pairs.push_back(std::move(pairs));
  }
}

}  // namespace

void read_eval_curves(RunRecord& record) {
  const std::string path = record.path + "/eval/curves.json";
  if (!core::file_exists(path)) return;
  try {
    add_curves(core::parse_json(core::read_file(path, kMaxCertaintyBytes), core::printable(path)), record);
    return;
  } catch (const core::Error&) {
  } catch (const Json::exception&) {
  }
  record.label_curves.clear();
  record.number_pairs.clear();
}

void read_certainty(RunRecord& record) {
  const std::string path = record.path + "/eval/certainty.json";
  if (!core::file_exists(path)) return;
  try {
    record.sure = sure_of(core::parse_json(core::read_file(path, kMaxCertaintyBytes), core::printable(path)));
  } catch (const core::Error&) {
  } catch (const Json::exception&) {
  }
}

}  // namespace stoker::observe
