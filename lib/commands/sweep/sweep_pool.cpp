// SPDX-License-Identifier: Apache-2.0
// The predictions of all folds taken together: each sample by the network that was not trained on it.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>

#include "commands/sweep/sweep_parts.h"
#include "config/preprocess/preprocessing.h"
#include "config/task_facts.h"
#include "core/error.h"
#include "core/format.h"
#include "core/system/file.h"
#include "core/system/machine.h"
#include "core/text/csv.h"
#include "core/text/json.h"

namespace stoker::train {
namespace {

using config::TaskKind;
using statistics::EvaluatedSamples;

constexpr uint64_t kMaxRowBytes = 64 << 20, kMaxRecordBytes = 64 << 20;
constexpr size_t kMostInMatrix = 1000;  // as eval has it

/// A sample as `train eval --logits` writes it.
struct PredictedRow {
  std::string path;
  int32_t truth_class = 0;
  std::vector<float> truth;    ///< true values of labels and numbers
  std::vector<float> outputs;  ///< raw, or numbers in the unit of the targets
};

/// One seed with all its folds.
struct Predictions {
  config::Preprocessing record;
  std::vector<std::string> names;  ///< names of labels or targets; for classes: of all outputs
  std::vector<PredictedRow> rows;  ///< by path
};

float number_in_cell(const core::CsvReader& reader, const std::string& cell) {
  char* end = nullptr;
  const float number = std::strtof(cell.c_str(), &end);
  if (cell.empty() || *end != 0) reader.fail("not a number: " + core::printable(cell));
  return number;
}

int32_t class_in_cell(const core::CsvReader& reader, const std::vector<std::string>& names, const std::string& cell) {
  const auto found = std::find(names.begin(), names.end(), cell);
  if (found == names.end()) reader.fail("no class: " + core::printable(cell));
  return static_cast<int32_t>(found - names.begin());
}

/// path,true,class,probability,<class>... | path,true,class,probability,logit | path,true...,prediction...,raw
/// output...
void read_fold(const std::string& run_dir, Predictions& into) {
  const std::string record = run_dir + "/checkpoints/best/preprocess.json";
  into.record = config::preprocessing_from_json(
      core::parse_json(core::read_file(record, kMaxRecordBytes), core::printable(record)), record);
  const TaskKind task = into.record.task;
  core::CsvReader reader(run_dir + kFoldFolder + "/images.csv", kMaxRowBytes);
  std::vector<std::string> cells;
  if (!reader.next_row(cells)) reader.fail("it is empty");
  const size_t columns = cells.size(), targets = into.record.names.size();
  const bool has_classes = task == TaskKind::multiclass || task == TaskKind::binary;
  if (columns < (has_classes ? 5 : 1 + 2 * targets + (task == TaskKind::multilabel ? targets : 0))) {
    reader.fail("columns are missing");
  }
  into.names = task == TaskKind::multiclass ? std::vector(cells.begin() + 4, cells.end()) : into.record.names;
  while (reader.next_row(cells)) {
    if (cells.size() != columns) reader.fail(core::format("{} fields instead of {}", cells.size(), columns));
    PredictedRow row;
    row.path = cells[0];
    const auto numbers = [&](size_t begin, size_t end) {
      std::vector<float> values;
      for (size_t i = begin; i < end; ++i) values.push_back(number_in_cell(reader, cells[i]));
      return values;
    };
    if (has_classes) {
      row.truth_class = class_in_cell(reader, into.names, cells[1]);
      row.truth = {static_cast<float>(row.truth_class)};
      row.outputs = numbers(4, columns);
    } else {
      row.truth = numbers(1, 1 + targets);
      const size_t begin = 1 + targets + (task == TaskKind::multilabel ? targets : 0);
      row.outputs = numbers(begin, begin + targets);
    }
    into.rows.push_back(std::move(row));
  }
}

void add_classes(const PredictedRow& row, double temperature, EvaluatedSamples& samples) {
  const std::vector<float>& z = row.outputs;
  const auto best = static_cast<size_t>(std::max_element(z.begin(), z.end()) - z.begin());
  const auto truth = static_cast<size_t>(row.truth_class);
  double sum = 0, tempered_sum = 0;
  int64_t before = 0;  // classes that are thought likelier than the true one
  for (size_t k = 0; k < z.size(); ++k) {
    const double below = double{z[k]} - z[best];
    sum += std::exp(below);
    tempered_sum += std::exp(below / temperature);
    before += z[k] > z[truth] || (z[k] == z[truth] && k < truth) ? 1 : 0;
  }
  samples.loss.push_back(static_cast<float>(std::log(sum) - (double{z[truth]} - z[best])));
  samples.truth_class.push_back(row.truth_class);
  samples.predicted_class.push_back(static_cast<int32_t>(best));
  samples.in_top5.push_back(before < 5 ? 1 : 0);
  samples.confidence.push_back(static_cast<float>(1 / tempered_sum));
}

EvaluatedSamples samples_of(const Predictions& of) {
  EvaluatedSamples samples;
  samples.task = of.record.task;
  const bool has_classes = samples.task == TaskKind::multiclass, has_numbers = config::has_scaled_targets(samples.task);
  samples.columns = static_cast<int64_t>(samples.task == TaskKind::binary ? 1 : of.names.size());
  samples.threshold = of.record.threshold;
  for (const PredictedRow& row : of.rows) {
    samples.samples.push_back(static_cast<int64_t>(samples.samples.size()));
    if (has_classes) {
      add_classes(row, of.record.temperature, samples);
      continue;
    }
    double loss = 0;  // of numbers it is not known here
    for (size_t k = 0; k < row.outputs.size(); ++k) {
      const double z = row.outputs[k];
      if (!has_numbers) loss += std::max(z, 0.0) - z * row.truth[k] + std::log1p(std::exp(-std::abs(z)));
      samples.outputs.push_back(has_numbers ? row.outputs[k] : static_cast<float>(z / of.record.temperature));
      samples.truth.push_back(row.truth[k]);
    }
    samples.loss.push_back(static_cast<float>(loss / static_cast<double>(row.outputs.size())));
  }
  return samples;
}

/// As `train eval` has them; with several seeds their means, with samples drawn for all alike.
std::vector<statistics::MetricEstimate> metrics_of(const std::vector<EvaluatedSamples>& seeds) {
  statistics::BootstrapSettings settings;
  settings.threads = core::read_machine_facts().cpus;
  std::vector<statistics::MetricEstimate> metrics = statistics::certainty_of(seeds[0], settings).metrics;
  if (seeds.size() == 1) return metrics;
  std::vector<std::unique_ptr<statistics::WeightedMetrics>> each;
  for (const EvaluatedSamples& samples : seeds) each.push_back(statistics::make_weighted_metrics(samples));
  const size_t figures = metrics.size();
  const auto mean = [&](const std::vector<uint32_t>& weights, double* values) {
    std::vector<double> of_one(figures);
    std::fill(values, values + figures, 0);
    for (const auto& one : each) {
      one->values(weights, of_one.data());
      for (size_t k = 0; k < figures; ++k) values[k] += of_one[k] / static_cast<double>(each.size());
    }
  };
  std::vector<double> values(figures);
  mean(std::vector<uint32_t>(static_cast<size_t>(seeds[0].count()), 1), values.data());
  const std::vector<statistics::Interval> intervals = statistics::bootstrap(seeds[0].count(), figures, mean, settings);
  for (size_t k = 0; k < figures; ++k) {
    metrics[k].value = values[k];
    metrics[k].interval = intervals[k];
  }
  return metrics;
}

/// True classes down, predicted ones across; of many classes the pairs that occur. Empty: the task has none.
std::string confusion_of(const std::vector<std::string>& names, const std::vector<EvaluatedSamples>& seeds) {
  const TaskKind task = seeds[0].task;
  if (task != TaskKind::multiclass && task != TaskKind::binary) return "";
  std::map<std::pair<int32_t, int32_t>, int64_t> counts;  // true, predicted
  for (const EvaluatedSamples& samples : seeds) {
    const double threshold = samples.threshold.front();
    const auto least = static_cast<float>(config::logit_of(threshold));
    for (size_t i = 0; i < samples.samples.size(); ++i) {
      ++(task == TaskKind::binary ? counts[{samples.truth[i] > 0.5f ? 1 : 0, samples.outputs[i] >= least ? 1 : 0}]
                                  : counts[{samples.truth_class[i], samples.predicted_class[i]}]);
    }
  }
  const auto name = [&](int32_t k) { return names[static_cast<size_t>(k)]; };
  std::string csv;
  if (names.size() > kMostInMatrix) {
    csv = core::csv_row({"true", "predicted", "images"}) + "\n";
    for (const auto& [pair, count] : counts) {
      csv += core::csv_row({name(pair.first), name(pair.second), std::to_string(count)}) + "\n";
    }
    return csv;
  }
  std::vector<std::string> cells = {"true\\predicted"};
  cells.insert(cells.end(), names.begin(), names.end());
  csv = core::csv_row(cells) + "\n";
  for (int32_t truth = 0; truth < static_cast<int32_t>(names.size()); ++truth) {
    cells = {name(truth)};
    for (int32_t predicted = 0; predicted < static_cast<int32_t>(names.size()); ++predicted) {
      const auto found = counts.find({truth, predicted});
      cells.push_back(std::to_string(found == counts.end() ? 0 : found->second));
    }
    csv += core::csv_row(cells) + "\n";
  }
  return csv;
}

std::vector<std::string> image_paths(const Predictions& of) {
  std::vector<std::string> paths;
  for (const PredictedRow& row : of.rows) paths.push_back(row.path);
  return paths;
}

}  // namespace

std::optional<Pooled> pooled_of(const Sweep& sweep, size_t recipe,
                                const std::vector<std::optional<PartResult>>& results) {
  std::vector<Predictions> seeds(static_cast<size_t>(sweep.seeds));
  for (size_t i = 0; i < sweep.parts.size(); ++i) {
    const SweepPart& part = sweep.parts[i];
    if (part.recipe != recipe) continue;
    if (!results[i] || results[i]->metric.empty()) return std::nullopt;
    read_fold(sweep.path_of(part), seeds[static_cast<size_t>(part.unit / sweep.folds)]);
  }
  std::vector<EvaluatedSamples> samples;
  for (Predictions& seed : seeds) {
    std::stable_sort(seed.rows.begin(), seed.rows.end(),
                     [](const PredictedRow& a, const PredictedRow& b) { return a.path < b.path; });
    if (image_paths(seed) != image_paths(seeds[0])) {
      throw core::Error(core::ErrorKind::data, core::printable(sweep.directory) + ": seeds were judged on other images",
                        "the data changed between its runs: begin the sweep again in another folder");
    }
    samples.push_back(samples_of(seed));
  }
  Pooled pooled;
  pooled.samples = samples[0].count();
  pooled.metrics = metrics_of(samples);
  if (config::has_scaled_targets(samples[0].task)) pooled.metrics.erase(pooled.metrics.begin());  // the loss
  pooled.confusion = confusion_of(seeds[0].names, samples);
  return pooled;
}

std::string pooled_csv(const Sweep& sweep, const std::vector<std::optional<Pooled>>& pooled) {
  std::vector<std::string> cells;
  for (const auto& [name, value] : sweep.recipes[0]) cells.push_back(name);
  for (const char* const name : {"images", "metric", "value", "low", "high"}) cells.emplace_back(name);
  std::string csv = core::csv_row(cells) + "\n";
  for (size_t i = 0; i < pooled.size(); ++i) {
    if (!pooled[i]) continue;
    for (const statistics::MetricEstimate& metric : pooled[i]->metrics) {
      cells.clear();
      for (const auto& [name, value] : sweep.recipes[i]) cells.push_back(value);
      cells.push_back(std::to_string(pooled[i]->samples));
      cells.push_back(metric.name);
      for (const double value : {metric.value, metric.interval.low, metric.interval.high}) {
        cells.push_back(number_cell(value));
      }
      csv += core::csv_row(cells) + "\n";
    }
  }
  return csv;
}

}  // namespace stoker::train
