// SPDX-License-Identifier: Apache-2.0
#include "observe/report/run_record.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "core/error.h"
#include "core/format.h"
#include "core/system/file.h"
#include "core/text/json.h"

namespace stoker::observe {
namespace {

using core::Json;

constexpr uint64_t kMaxBytes = uint64_t{1} << 30;
constexpr uint64_t kMaxConfusionBytes = 64 << 20;
constexpr uint64_t kMaxWorstBytes = 4 << 20;
constexpr size_t kMaxWorst = 16, kMaxDiagnoses = 200;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(line);
  }
  return lines;
}

std::optional<double> number_of(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(value)) return std::nullopt;
  return value;
}

void add_point(Curves& curves, const std::string& name, double x, double y) {
  Curve& curve = curves[name];
  curve.x.push_back(x);
  curve.y.push_back(y);
}

/// Drops the points behind `x`: the run went back there.
void cut(Curves& curves, double x) {
  for (auto& [name, curve] : curves) {
    while (!curve.x.empty() && curve.x.back() > x) {
      curve.x.pop_back();
      curve.y.pop_back();
    }
  }
}

/// The events of metrics.jsonl, one after the other.
class EventReader {
 public:
  explicit EventReader(RunRecord& record) : record_(record) {}

  void read(const Json& event) {
    const std::string kind = event.value("event", "");
    if (kind == "start" || kind == "resume") begin(event, kind == "resume");
    if (kind == "report") add_report(event);
    if (kind == "epoch") add_epoch(event);
    if (kind == "report" || kind == "epoch") add_diagnosis(event);
    if (kind == "checkpoint") record_.checkpoint_seconds += event.value("seconds", 0.0);
    if (kind == "finish") {
      const std::string reason = event.value("reason", "");
      const bool goes_on = reason.rfind("signal:", 0) == 0 || reason == "max-time";
      record_.state = (goes_on ? "stopped (" : "finished (") + reason + ")";
    }
  }
  double updates_per_epoch() const { return updates_per_epoch_; }

 private:
  void begin(const Json& event, bool resumed) {
    if (record_.started.empty()) record_.started = event.value("time", "");
    record_.state = "training";
    updates_per_epoch_ = std::max(1.0, event.value("updates_per_epoch", updates_per_epoch_));
    record_.resumes += resumed ? 1 : 0;
    seconds_before_ = 0;
    const double epochs = event.value("updates", 0.0) / updates_per_epoch_;
    cut(record_.by_report, epochs);
    // Minutes go on from the last report that still counts.
    size_t kept = 0;
    if (const auto updates = record_.by_report.find("updates"); updates != record_.by_report.end()) {
      kept = updates->second.x.size();
    }
    minutes_.resize(std::min(kept, minutes_.size()));
    if (!minutes_.empty()) seconds_before_ = 60 * minutes_.back();
    cut(record_.by_minute, seconds_before_ / 60);
  }

  void add_report(const Json& event) {
    const double epochs = event.value("updates", 0.0) / updates_per_epoch_;
    const double minutes = (seconds_before_ + event.value("elapsed_seconds", 0.0)) / 60;
    minutes_.push_back(minutes);
    add_fields(event, "", epochs, minutes);
  }

  void add_diagnosis(const Json& event) {
    const auto found = event.find("diagnosis");
    if (found == event.end() || !found->is_object()) return;
    DiagnosisRow row;
    row.epochs = event.value("updates", 0.0) / updates_per_epoch_;
    row.verdict = found->value("verdict", "");
    row.advice = found->value("advice", "");
    row.gain_percent = found->value("gain_percent", 0.0);
    for (const Json& fact : found->value("evidence", Json::array())) {
      row.evidence += (row.evidence.empty() ? "" : ", ") + fact.get<std::string>();
    }
    std::vector<DiagnosisRow>& rows = record_.diagnoses;
    if (!rows.empty() && rows.back().verdict == row.verdict && rows.back().advice == row.advice) rows.pop_back();
    if (rows.size() < kMaxDiagnoses) rows.push_back(row);
  }

  void add_epoch(const Json& event) {
    const auto times = event.find("times");
    if (times == event.end() || !times->is_object() || times->value("updates", 0) == 0) return;
    const auto row_of = [](const std::string& name, const Json& spread) {
      return TimeRow{name, spread.value("mean_seconds", 0.0), spread.value("p95_seconds", 0.0),
                     spread.value("max_seconds", 0.0)};
    };
    record_.step_times = {row_of("update", times->at("update"))};
    record_.sample_times.clear();
    for (const auto& part : times->at("parts").items()) record_.step_times.push_back(row_of(part.key(), part.value()));
    if (const auto device = times->find("device"); device != times->end()) {
      for (const auto& part : device->items())
        record_.step_times.push_back(row_of("device " + part.key(), part.value()));
    }
    for (const auto& stage : times->at("sample").items())
      record_.sample_times.push_back(row_of(stage.key(), stage.value()));
  }

  void add_fields(const Json& object, const std::string& prefix, double epochs, double minutes) {
    for (const auto& item : object.items()) {
      if (item.value().is_object()) {
        add_fields(item.value(), prefix + item.key() + ".", epochs, minutes);
      } else if (item.value().is_number() && std::isfinite(item.value().get<double>())) {
        add_point(record_.by_report, prefix + item.key(), epochs, item.value().get<double>());
        add_point(record_.by_minute, prefix + item.key(), minutes, item.value().get<double>());
      }
    }
  }

  RunRecord& record_;
  double updates_per_epoch_ = 1;
  double seconds_before_ = 0;    ///< of training, by the processes before this one
  std::vector<double> minutes_;  ///< of every report that counts
};

/// Returns updates per epoch.
double read_events(RunRecord& record) {
  const std::string text = core::read_file(record.path + "/metrics.jsonl", kMaxBytes);
  EventReader reader(record);
  for (const std::string& line : lines_of(text)) {
    try {
      const Json event = core::parse_json(line, "metrics.jsonl");
      if (!event.is_object()) throw core::Error(core::ErrorKind::data, "not an object");
      reader.read(event);
    } catch (const core::Error&) {
      ++record.damaged_lines;  // a power failure tears a line; the others still hold
    } catch (const Json::exception&) {
      ++record.damaged_lines;  // a field of another type
    }
  }
  return reader.updates_per_epoch();
}

void read_summary(RunRecord& record, double updates_per_epoch) {
  const std::vector<std::string> lines = lines_of(core::read_file(record.path + "/summary.csv", kMaxBytes));
  if (lines.empty()) return;
  record.epoch_columns = csv_cells(lines[0]);
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> cells = csv_cells(lines[i]);
    if (cells.size() != record.epoch_columns.size()) continue;  // half written
    record.epoch_rows.push_back(cells);
    std::optional<double> epochs;
    for (size_t k = 0; k < cells.size(); ++k) {
      const auto value = number_of(cells[k]);
      if (!value) continue;
      if (record.epoch_columns[k] == "epoch") epochs = *value + 1;
      if (record.epoch_columns[k] == "updates" && updates_per_epoch > 1) epochs = *value / updates_per_epoch;
    }
    for (size_t k = 0; epochs && k < cells.size(); ++k) {
      if (const auto value = number_of(cells[k])) add_point(record.by_epoch, record.epoch_columns[k], *epochs, *value);
    }
  }
}

/// "  name: value      # origin" below "group:". Only config.yaml as this program writes it is understood.
void read_options(RunRecord& record) {
  const std::string path = record.path + "/config.yaml";
  if (!core::file_exists(path)) return;
  for (const std::string& line : lines_of(core::read_file(path, kMaxConfusionBytes))) {
    const size_t colon = line.find(": ");
    if (line.rfind("  ", 0) != 0 || colon == std::string::npos) continue;
    const size_t origin = line.find(" # ", colon);
    std::string value = line.substr(colon + 2, origin == std::string::npos ? origin : origin - colon - 2);
    value.resize(value.find_last_not_of(' ') + 1);
    record.options.emplace_back(line.substr(2, colon - 2), value);
  }
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

/// A plan of another version is no plan: the rest of the record still stands.
void read_plan(RunRecord& record) {
  const std::string path = record.path + "/plan.json";
  if (!core::file_exists(path)) return;
  try {
    const Json plan = core::parse_json(core::read_file(path, kMaxConfusionBytes), core::printable(path));
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
    const std::string what = core::printable(record.path + name);
    const std::vector<std::string> lines = lines_of(core::read_file(record.path + name, kMaxConfusionBytes));
    ConfusionTable table;
    if (!lines.empty()) table.class_names = csv_cells(lines[0]);
    if (!table.class_names.empty()) table.class_names.erase(table.class_names.begin());
    const size_t classes = table.class_names.size();
    for (size_t i = 1; i < lines.size(); ++i) {
      const std::vector<std::string> cells = csv_cells(lines[i]);
      std::vector<int64_t> row;
      for (size_t k = 1; k < cells.size(); ++k) row.push_back(static_cast<int64_t>(number_of(cells[k]).value_or(-1)));
      for (const int64_t count : row) {
        if (count < 0) throw core::Error(core::ErrorKind::data, what + ": a count is no whole number");
      }
      table.counts.push_back(row);
      if (row.size() == classes) continue;
      throw core::Error(core::ErrorKind::data,
                        core::format("{}: line {} has {} counts for {} classes", what, i + 1, row.size(), classes));
    }
    if (table.counts.size() != classes) {
      throw core::Error(core::ErrorKind::data,
                        core::format("{}: {} rows for {} classes", what, table.counts.size(), classes));
    }
    record.confusion = table;
    return;
  }
}

/// Pictures are extra: a file that is not ours shows none.
void read_worst(RunRecord& record) {
  const std::string path = record.path + "/worst.json";
  if (!core::file_exists(path)) return;
  try {
    const Json file = core::parse_json(core::read_file(path, kMaxWorstBytes), "worst.json");
    for (const Json& sample : file.at("samples")) {
      WorstRow row = {sample.at("name"), sample.at("truth"), sample.at("predicted"), sample.at("jpeg")};
      const bool is_base64 =
          row.jpeg.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=") ==
          std::string::npos;
      if (is_base64 && record.worst.size() < kMaxWorst) record.worst.push_back(row);
    }
  } catch (const core::Error&) {
    record.worst.clear();
  } catch (const Json::exception&) {
    record.worst.clear();
  }
}

}  // namespace

std::string RunRecord::option(const std::string& name) const {
  for (const auto& [key, value] : options) {
    if (key == name) return value;
  }
  return "";
}

std::vector<std::string> csv_cells(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      cells.back() += line[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  return cells;
}

RunRecord read_run_record(const std::string& path) {
  RunRecord record;
  record.path = path;
  while (record.path.size() > 1 && record.path.back() == '/') record.path.pop_back();
  for (const char* const name : {"/metrics.jsonl", "/summary.csv"}) {
    if (core::file_exists(record.path + name)) continue;
    throw core::Error(core::ErrorKind::no_input, core::printable(record.path + name) + " does not exist",
                      "name the directory of a run that has begun to train, as given to --run-dir");
  }
  const double updates_per_epoch = read_events(record);
  read_summary(record, updates_per_epoch);
  read_options(record);
  read_confusion(record);
  read_worst(record);
  read_plan(record);
  return record;
}

}  // namespace stoker::observe
