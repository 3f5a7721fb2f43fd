// SPDX-License-Identifier: Apache-2.0
// eval/certainty.json, as `train eval --output` writes it, read back.
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
constexpr size_t kMaxThresholds = 1000;

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

}  // namespace

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
