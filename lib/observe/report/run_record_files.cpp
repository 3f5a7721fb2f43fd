// SPDX-License-Identifier: Apache-2.0
#include "observe/report/run_record_files.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <utility>

#include "config/yaml/yaml_tree.h"
#include "core/error.h"
#include "core/format.h"
#include "core/system/file.h"
#include "core/text/csv.h"
#include "core/text/json.h"

namespace stoker::observe {
namespace {

using core::Json;
using Cells = std::vector<std::string>;

constexpr uint64_t kMaxFileBytes = 64 << 20, kMaxWorstBytes = 4 << 20;
constexpr size_t kMaxPictures = 16;  // of each kind
constexpr double kMaxCount = 1e15;   ///< below 2^53: such counts are exact

std::optional<double> number_of(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// See core::read_csv_table().
core::CsvTable table_in(const std::string& path, const std::string& key) {
  return core::read_csv_table(core::read_file(path, kMaxFileBytes), path, key, {}, /*max_row_bytes=*/1 << 20);
}

/// Older programs called the first epoch 0.
void count_from_one(const Cells& columns, Cells& cells, bool& counts_from_zero) {
  for (size_t k = 0; k < cells.size(); ++k) {
    const auto epoch = columns[k] == "epoch" ? number_of(cells[k]) : std::nullopt;
    if (!epoch) continue;
    counts_from_zero = counts_from_zero || *epoch == 0;
    if (counts_from_zero) cells[k] = core::format("{:.0f}", *epoch + 1);
  }
}

void add_epoch_row(RunRecord& record, const Cells& cells, double updates_per_epoch) {
  record.epoch_rows.push_back(cells);
  std::optional<double> epochs;
  for (size_t k = 0; k < cells.size(); ++k) {
    const auto value = number_of(cells[k]);
    if (!value) continue;
    if (record.epoch_columns[k] == "epoch") epochs = *value;
    if (record.epoch_columns[k] == "updates" && updates_per_epoch > 1) epochs = *value / updates_per_epoch;
  }
  for (size_t k = 0; epochs && k < cells.size(); ++k) {
    if (const auto value = number_of(cells[k])) add_point(record.by_epoch, record.epoch_columns[k], *epochs, *value);
  }
}

/// Calls visit(key, value) for the entries of a map; nothing for other nodes.
template <typename Visit>
void for_each_entry(const config::YamlNode& map, const Visit& visit) {
  if (map.kind != config::YamlNode::Kind::map) return;
  for (size_t i = 0; i + 1 < map.items.size(); i += 2) visit(map.items[i].text, map.items[i + 1]);
}

/// A value as one line; parts of a list that are not scalars are left out.
std::string option_text(const config::YamlNode& value) {
  if (value.kind != config::YamlNode::Kind::list) return value.text;
  std::string text;
  for (const config::YamlNode& item : value.items) text += (text.empty() ? "" : ", ") + item.text;
  return "[" + text + "]";
}

/// A cell of a confusion matrix.
int64_t count_of(const std::string& cell, const std::string& place) {
  const double count = number_of(cell).value_or(-1);
  if (count < 0 || count > kMaxCount || count != std::floor(count)) {
    throw core::Error(core::ErrorKind::data, place + ": a count is not a whole number");
  }
  return static_cast<int64_t>(count);
}

MemoryForecast forecast_of(const Json& predicted, const std::string& where, const Json& observed) {
  MemoryForecast memory;
  memory.where = where;
  memory.predicted_bytes = predicted.at("bytes").get<double>();
  if (observed.is_number()) memory.observed_bytes = observed.get<double>();
  for (const Json& line : predicted.at("lines")) {
    memory.parts.emplace_back(line.at("name").get<std::string>(), line.at("bytes").get<double>());
  }
  return memory;
}

void add_pictures(const Json& samples, std::vector<PictureRow>& rows) {
  for (const Json& sample : samples) {
    PictureRow row = {sample.at("name"), sample.at("truth"),       sample.at("predicted"),
                      sample.at("jpeg"), sample.value("heat", ""), sample.value("wrong", false)};
    const bool is_base64 =
        (row.jpeg + row.heat).find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=") ==
        std::string::npos;
    if (is_base64 && rows.size() < kMaxPictures) rows.push_back(row);
  }
}

/// Whether somebody set the option on this line of config.yaml. The comment names where the value is from: a default,
/// or "auto" where it follows from others.
bool is_chosen(const std::string& line) {
  const size_t comment = line.rfind(" # ");
  if (comment == std::string::npos) return true;
  const std::string origin = line.substr(comment + 3);
  return origin.rfind("default", 0) != 0 && origin.rfind("auto", 0) != 0;
}

}  // namespace

void add_point(Curves& curves, const std::string& name, double x, double y) {
  Curve& curve = curves[name];
  curve.x.push_back(x);
  curve.y.push_back(y);
}

void read_summary(RunRecord& record, double updates_per_epoch) {
  core::CsvTable table = table_in(record.path + "/summary.csv", "epoch");
  record.epoch_columns = std::move(table.columns);
  if (!table.left_out.empty()) record.left_out.push_back(table.left_out_text());
  bool counts_from_zero = false;
  for (core::CsvTable::Row& row : table.rows) {
    count_from_one(record.epoch_columns, row.cells, counts_from_zero);
    add_epoch_row(record, row.cells, updates_per_epoch);
  }
}

void read_run_options(RunRecord& record) {
  const std::string path = record.path + "/config.yaml";
  if (!core::file_exists(path)) return;
  std::vector<config::YamlProblem> ignored;
  const std::string text = core::read_file(path, config::kMaxYamlBytes);
  const config::YamlNode top = config::parse_yaml(text, ignored);
  const std::vector<std::string> lines = core::lines_of(text);
  for_each_entry(top, [&](const std::string& group, const config::YamlNode& options) {
    if (options.kind != config::YamlNode::Kind::map) record.options.emplace_back(group, option_text(options));
    for_each_entry(options, [&](const std::string& name, const config::YamlNode& value) {
      record.options.emplace_back(name, option_text(value));
      const auto line = static_cast<size_t>(value.line) - 1;
      if (line >= lines.size() || is_chosen(lines[line])) record.chosen.push_back(name);
    });
  });
}

void read_memory_plan(RunRecord& record) {
  const std::string path = record.path + "/plan.json";
  if (!core::file_exists(path)) return;
  try {
    const Json plan = core::parse_json(core::read_file(path, kMaxFileBytes), core::printable(path));
    const Json& observed = plan.at("observed");
    const auto seen = [&](const char* name) { return observed.is_object() ? observed.value(name, Json()) : Json(); };
    const Json& predicted = plan.at("predicted");
    std::vector<MemoryForecast> memory = {forecast_of(predicted.at("host"), "host", seen("host_bytes"))};
    if (const Json& device = predicted.at("device"); device.is_object()) {
      memory.push_back(forecast_of(device, device.at("name").get<std::string>(), seen("device_bytes")));
    }
    record.memory = std::move(memory);
  } catch (const core::Error&) {
  } catch (const Json::exception&) {
  }
}

void read_confusion(RunRecord& record) {
  for (const std::string name : {"/eval/confusion.csv", "/confusion.csv"}) {
    if (!core::file_exists(record.path + name)) continue;
    const core::CsvTable rows = table_in(record.path + name, "");
    if (!rows.left_out.empty()) throw core::Error(core::ErrorKind::data, rows.left_out.front());
    ConfusionTable table;
    if (!rows.columns.empty()) table.class_names.assign(rows.columns.begin() + 1, rows.columns.end());
    for (const core::CsvTable::Row& row : rows.rows) {
      std::vector<int64_t> counts;
      for (size_t k = 1; k < row.cells.size(); ++k) {
        counts.push_back(count_of(row.cells[k], core::format("{}:{}", core::printable(record.path + name), row.line)));
      }
      table.counts.push_back(std::move(counts));
    }
    const size_t classes = table.class_names.size();
    if (table.counts.size() != classes) {
      throw core::Error(core::ErrorKind::data,
                        core::format("{}: {} rows for {} classes", core::printable(record.path + name),
                                     table.counts.size(), classes));
    }
    record.confusion = std::move(table);
    return;
  }
}

void read_pictures(RunRecord& record) {
  const std::string path = record.path + "/worst.json";
  if (!core::file_exists(path)) return;
  try {
    const Json file = core::parse_json(core::read_file(path, kMaxWorstBytes), "worst.json");
    add_pictures(file.at("samples"), record.worst);
    if (file.contains("ordinary")) add_pictures(file.at("ordinary"), record.ordinary);
  } catch (const core::Error&) {
    record.worst.clear();
    record.ordinary.clear();
  } catch (const Json::exception&) {
    record.worst.clear();
    record.ordinary.clear();
  }
}

// eval/certainty.json and eval/curves.json, as `train eval --output` writes them, read back.

namespace {

using core::Json;

constexpr uint64_t kMaxCertaintyBytes = 16 << 20;
constexpr size_t kMaxThresholds = 1000, kMaxCurvePoints = 1000, kMaxTargets = 12;

double number_of(const Json& object, const char* name) {
  const Json value = object.value(name, Json());
  return value.is_number() ? value.get<double>() : std::nan("");
}

MetricInterval figure_of(const Json& metric, const char* value) {
  return {metric.at("name").get<std::string>(), number_of(metric, value), number_of(metric, "low"),
          number_of(metric, "high")};
}

CertaintyRecord sure_of(const Json& file) {
  CertaintyRecord sure;
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

SweepTables read_sweep_tables(const std::string& folder) {
  constexpr size_t kMostRows = 1001;
  SweepTables tables;
  const auto rows_of = [&](const std::string& path) {
    std::vector<Cells> rows;
    if (!core::file_exists(path)) return rows;
    core::CsvTable table = table_in(path, "");
    if (!table.left_out.empty()) tables.left_out.push_back(table.left_out_text());
    rows.push_back(std::move(table.columns));
    for (core::CsvTable::Row& row : table.rows) {
      if (rows.size() < kMostRows) rows.push_back(std::move(row.cells));
    }
    return rows;
  };
  tables.sweep = rows_of(folder + "/sweep.csv");
  tables.halving = rows_of(folder + "/halving.csv");
  return tables;
}

}  // namespace stoker::observe
