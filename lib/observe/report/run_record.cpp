// SPDX-License-Identifier: Apache-2.0
#include "observe/report/run_record.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>
#include <sstream>

#include "core/error.h"
#include "core/format.h"
#include "core/system/file.h"
#include "core/text/json.h"
#include "observe/report/run_record_files.h"

namespace stoker::observe {
namespace {

using core::Json;

constexpr uint64_t kMaxBytes = uint64_t{1} << 30;
constexpr size_t kMaxDiagnoses = 200;

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
      const bool continues = reason.rfind("signal:", 0) == 0 || reason == "max-time" || reason == "job-end";
      record_.state = (continues ? "stopped (" : "finished (") + reason + ")";
    }
  }
  double updates_per_epoch() const { return updates_per_epoch_; }

 private:
  void begin(const Json& event, bool resumed) {
    if (record_.started.empty()) record_.started = event.value("time", "");
    record_.state = "training";
    record_.backend = event.value("backend", "");
    updates_per_epoch_ = std::max(1.0, event.value("updates_per_epoch", updates_per_epoch_));
    record_.resumes += resumed ? 1 : 0;
    seconds_before_ = 0;
    const double epochs = event.value("updates", 0.0) / updates_per_epoch_;
    cut(record_.by_report, epochs);
    cut(record_.by_epoch, epochs);
    // Minutes continue from the last report that still counts.
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
    if (const Json mfu = event.value("mfu", Json()); mfu.is_number()) {
      add_point(record_.by_epoch, "mfu", event.value("updates", 0.0) / updates_per_epoch_, mfu.get<double>());
    }
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
  double seconds_before_ = 0;    ///< training time of the processes before this one
  std::vector<double> minutes_;  ///< training time at every report that counts
};

/// Returns updates per epoch.
double read_events(RunRecord& record) {
  EventReader reader(record);
  record.damaged_lines += for_each_event(record.path, [&](const Json& event) {
    reader.read(event);
    return true;
  });
  return reader.updates_per_epoch();
}

}  // namespace

int64_t for_each_event(const std::string& run_dir, const std::function<bool(const Json& event)>& visit) {
  int64_t damaged = 0;
  for (const std::string& line : core::lines_of(core::read_file(run_dir + "/metrics.jsonl", kMaxBytes))) {
    try {
      const Json event = core::parse_json(line, "metrics.jsonl");
      if (!event.is_object()) throw core::Error(core::ErrorKind::data, "not an object");
      if (!visit(event)) break;
    } catch (const core::Error&) {
      ++damaged;
    } catch (const Json::exception&) {
      ++damaged;
    }
  }
  return damaged;
}

std::string RunRecord::option(const std::string& name) const {
  for (const auto& [key, value] : options) {
    if (key == name) return value;
  }
  return "";
}

int64_t epochs_in(const RunRecord& run) {
  const auto epoch = std::find(run.epoch_columns.begin(), run.epoch_columns.end(), "epoch") - run.epoch_columns.begin();
  std::set<std::string> epochs;
  for (const std::vector<std::string>& row : run.epoch_rows) {
    if (static_cast<size_t>(epoch) < row.size()) epochs.insert(row[static_cast<size_t>(epoch)]);
  }
  return static_cast<int64_t>(epochs.size());
}

std::optional<BestEpoch> best_epoch(const RunRecord& run) {
  const std::vector<std::string>& columns = run.epoch_columns;
  const auto place = [&](const std::string& name) {
    return static_cast<size_t>(std::find(columns.begin(), columns.end(), name) - columns.begin());
  };
  std::string wanted = "eval_" + run.option("eval-metric");
  std::replace(wanted.begin(), wanted.end(), '-', '_');
  if (place(wanted) == columns.size()) {  // of an older program, or the loss alone
    const auto is_metric = [](const std::string& name) {
      return name.rfind("eval_", 0) == 0 && name != "eval_loss" && name != "eval_seconds";
    };
    const auto first = std::find_if(columns.begin(), columns.end(), is_metric);
    wanted = first == columns.end() ? "eval_loss" : *first;
  }
  const size_t flag = place("best"), column = place(wanted), epoch = place("epoch");
  std::optional<BestEpoch> best;
  if (flag == columns.size() || column == columns.size()) return best;
  for (size_t i = 0; i < run.epoch_rows.size(); ++i) {
    const std::vector<std::string>& row = run.epoch_rows[i];
    const auto number_at = [&row](size_t at) {
      char* end = nullptr;
      const double value = at < row.size() ? std::strtod(row[at].c_str(), &end) : 0;
      return end == nullptr || end == row[at].c_str() ? std::nan("") : value;
    };
    const double value = number_at(column);
    if (row[flag] != "1" || !std::isfinite(value)) continue;
    const std::string metric = wanted.substr(5);
    best = {metric,
            value,
            epoch < row.size() ? std::atoll(row[epoch].c_str()) : 0,
            i,
            metric == "loss" || metric.rfind("mae", 0) == 0 || metric.rfind("rmse", 0) == 0,
            number_at(place("eval_loss"))};
    if (std::isnan(best->loss)) best->loss = std::numeric_limits<double>::infinity();
  }
  return best;
}

bool is_better(const std::optional<BestEpoch>& a, const std::optional<BestEpoch>& b) {
  if (!a || !b) return a && !b;
  if (a->metric != b->metric) return a->metric < b->metric;
  if (a->value == b->value) return a->loss < b->loss;
  return a->lower_is_better ? a->value < b->value : a->value > b->value;
}

std::vector<std::string> differing_options(const std::vector<const RunRecord*>& runs) {
  std::vector<std::string> all, chosen;
  for (const RunRecord* run : runs) {
    for (const auto& option : run->options) {
      const std::string& name = option.first;
      if (name == "run-dir" || std::find(all.begin(), all.end(), name) != all.end()) continue;
      const auto differs = [&](const RunRecord* other) { return other->option(name) != option.second; };
      if (std::none_of(runs.begin(), runs.end(), differs)) continue;
      all.push_back(name);
      const auto chooses = [&](const RunRecord* other) {
        return std::find(other->chosen.begin(), other->chosen.end(), name) != other->chosen.end();
      };
      if (std::any_of(runs.begin(), runs.end(), chooses)) chosen.push_back(name);
    }
  }
  std::vector<std::string>& shown = chosen.empty() ? all : chosen;
  // Figures on other data are no ranking: that is what to see first.
  std::stable_partition(shown.begin(), shown.end(), [](const std::string& name) { return name == "data-dir"; });
  return shown;
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
  read_run_options(record);
  read_confusion(record);
  read_certainty(record);
  read_eval_curves(record);
  read_pictures(record);
  read_memory_plan(record);
  return record;
}

}  // namespace stoker::observe
