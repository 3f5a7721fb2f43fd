// SPDX-License-Identifier: Apache-2.0
#include "commands/eval/report_csv.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "config/task_facts.h"
#include "core/format.h"
#include "core/text/csv.h"
#include "core/text/json.h"

namespace stoker::train {
namespace {

constexpr char kBetweenTexts[] = "\x1f";  // the unit separator: in no name that can be printed

std::string json_text(const std::string& text) { return core::json_line(core::Json(text)); }

std::string number(double value) { return core::format("{:.9g}", value); }

/// The largest score has the best class.
class ClassTable : public ImageTable {
 public:
  ClassTable(std::vector<std::string> class_names, double temperature, const TableColumns& wanted)
      : ImageTable(wanted), class_names_(std::move(class_names)), temperature_(temperature) {
    add_column("path", kText);
    if (wanted.truth) add_column("true", kText);
    for (size_t rank = 1; rank <= shown(); ++rank) {
      const std::string ending = rank == 1 ? "" : core::format("_{}", rank);
      add_column("class" + ending, kText);
      add_column("probability" + ending, kNumber);
    }
    for (const std::string& name : class_names_) {
      if (wanted.probabilities) add_column("probability_" + name, kNumber);
    }
    for (const std::string& name : class_names_) {
      if (wanted.logits) add_column(name, kNumber);
    }
    end_columns();
  }

  void add(const ImageResult& result) override {
    const float* const logits = result.outputs;
    const size_t classes = class_names_.size();
    std::vector<size_t> order(classes);
    std::iota(order.begin(), order.end(), size_t{0});
    const auto is_before = [&](size_t a, size_t b) {
      return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;  // the first of equal ones
    };
    const size_t sorted = std::max<size_t>(1, shown());  // of 100,000 classes few are shown
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(sorted), order.end(), is_before);
    const double best = logits[order.front()];
    double sum = 0;  // of softmax's denominator, scaled by the largest term
    for (size_t k = 0; k < classes; ++k) sum += std::exp((double{logits[k]} - best) / temperature_);
    const auto probability = [&](size_t k) {
      return number(std::exp((double{logits[k]} - best) / temperature_) / sum);
    };
    std::vector<std::string> cells = {result.path};
    if (wanted().truth) cells.push_back(class_names_[static_cast<size_t>(result.label)]);
    for (size_t rank = 0; rank < shown(); ++rank) {
      cells.push_back(class_names_[order[rank]]);
      cells.push_back(probability(order[rank]));
    }
    for (size_t k = 0; wanted().probabilities && k < classes; ++k) cells.push_back(probability(k));
    for (size_t k = 0; wanted().logits && k < classes; ++k) cells.push_back(number(logits[k]));
    add_row(cells);
  }

 private:
  size_t shown() const { return std::min(class_names_.size(), static_cast<size_t>(wanted().top_k)); }

  const std::vector<std::string> class_names_;
  const double temperature_;
};

/// The probability of class 1 reaches the threshold or not.
class BinaryTable : public ImageTable {
 public:
  BinaryTable(std::vector<std::string> class_names, double threshold, double temperature, const TableColumns& wanted)
      : ImageTable(wanted),
        class_names_(std::move(class_names)),
        least_logit_(temperature * config::logit_of(threshold)) {
    add_column("path", kText);
    if (wanted.truth) add_column("true", kText);
    add_column("class", kText);
    add_column("probability_" + class_names_[1], kNumber);
    if (wanted.logits) add_column("logit", kNumber);
    end_columns();
  }

  void add(const ImageResult& result) override {
    std::vector<std::string> cells = {result.path};
    if (wanted().truth) cells.push_back(class_names_[static_cast<size_t>(result.label)]);
    cells.push_back(class_names_[result.outputs[0] >= least_logit_ ? 1 : 0]);
    cells.push_back(number(result.predictions[0]));
    if (wanted().logits) cells.push_back(number(result.outputs[0]));
    add_row(cells);
  }

 private:
  const std::vector<std::string> class_names_;
  const double least_logit_;
};

/// A number per target. `threshold`: of probabilities, from which on a label is named, one or one each; empty: targets
/// are numbers.
class NumberTable : public ImageTable {
 public:
  NumberTable(const std::vector<std::string>& names, const std::vector<std::string>& output_names,
              std::vector<double> threshold, const TableColumns& wanted)
      : ImageTable(wanted), names_(names), outputs_(output_names.size()), threshold_(std::move(threshold)) {
    add_column("path", kText);
    for (const std::string& name : names) {
      if (wanted.truth) add_column("true_" + name, kNumber);
    }
    if (names_labels()) add_column("labels", kTexts);
    for (const std::string& name : names) add_column(name, kNumber);
    for (const std::string& name : output_names) add_column(name, kNumber);
    end_columns();
  }

  void add(const ImageResult& result) override {
    std::vector<std::string> cells = {result.path};
    const auto add_numbers = [&](const float* numbers, size_t count) {
      for (size_t i = 0; i < count; ++i) cells.push_back(number(numbers[i]));
    };
    if (wanted().truth) add_numbers(result.targets, names_.size());
    if (names_labels()) cells.push_back(labels_of(result.predictions));
    add_numbers(result.predictions, names_.size());
    add_numbers(result.outputs, outputs_);
    add_row(cells);
  }

 private:
  bool names_labels() const { return !threshold_.empty() && !wanted().truth; }
  /// As lists of tags are read, with | between; of JSON with what no name holds.
  std::string labels_of(const float* probabilities) const {
    std::string labels;
    for (size_t i = 0; i < names_.size(); ++i) {
      if (double{probabilities[i]} < config::threshold_of(threshold_, i)) continue;
      labels += (labels.empty() ? "" : wanted().json ? kBetweenTexts : "|") + names_[i];
    }
    return labels;
  }

  const std::vector<std::string> names_;
  size_t outputs_;  ///< 0: raw outputs are not wanted
  std::vector<double> threshold_;
};

class FeatureTable : public ImageTable {
 public:
  FeatureTable(int64_t features, const TableColumns& wanted) : ImageTable(wanted), features_(features) {
    add_column("path", kText);
    for (int64_t i = 0; i < features; ++i) add_column(core::format("feature_{}", i), kNumber);
    end_columns();
  }

  void add(const ImageResult& result) override {
    std::vector<std::string> cells = {result.path};
    for (int64_t i = 0; i < features_; ++i) cells.push_back(number(result.outputs[i]));
    add_row(cells);
  }

 private:
  const int64_t features_;
};

}  // namespace

std::unique_ptr<ImageTable> make_feature_table(int64_t features, const TableColumns& wanted) {
  return std::make_unique<FeatureTable>(features, wanted);
}

void ImageTable::add_column(const std::string& name, Kind kind) {
  if (!wanted_.json) {
    const std::string before = columns_.empty() ? "" : text_.substr(0, text_.size() - 1) + ",";
    text_ = before + core::csv_field(name) + "\n";
  }
  columns_.emplace_back(name, kind);
}

std::string ImageTable::json_value(Kind kind, const std::string& cell) const {
  if (kind == kNumber) return cell.empty() ? "null" : cell;
  if (kind == kText) return json_text(cell);
  std::string list;
  for (size_t begin = 0; !cell.empty() && begin <= cell.size();) {
    const size_t end = std::min(cell.find(kBetweenTexts, begin), cell.size());
    list += (list.empty() ? "" : ", ") + json_text(cell.substr(begin, end - begin));
    begin = end + 1;
  }
  return "[" + list + "]";
}

void ImageTable::add_error(const std::string& path, const std::string& error) {
  std::vector<std::string> cells(columns_.size() - 1);
  cells.front() = path;
  add_row(std::move(cells), error);
}

void ImageTable::add_row(std::vector<std::string> cells, const std::string& error) {
  if (wanted_.errors) cells.push_back(error);
  if (wanted_.json) {
    for (size_t i = 0; i < cells.size(); ++i) {
      const bool is_missing = cells[i].empty() && (i + 1 == cells.size() ? wanted_.errors : !error.empty());
      const std::string value = is_missing ? "null" : json_value(columns_[i].second, cells[i]);
      text_ += (i == 0 ? "{" : ", ") + json_text(columns_[i].first) + ": " + value;
    }
    text_ += "}\n";
    return;
  }
  text_ += core::csv_row(cells) + "\n";
}

std::unique_ptr<ImageTable> make_image_table(const engine::TaskSpec& task, const std::vector<std::string>& names,
                                             int64_t outputs, const TableColumns& wanted) {
  if (task.kind == config::TaskKind::multiclass) {
    return std::make_unique<ClassTable>(names, task.options.temperature, wanted);
  }
  if (task.kind == config::TaskKind::binary) {
    return std::make_unique<BinaryTable>(names, task.options.threshold.front(), task.options.temperature, wanted);
  }
  std::vector<std::string> output_names;
  for (int64_t i = 0; wanted.logits && i < outputs; ++i) {
    output_names.push_back(task.kind == config::TaskKind::multilabel ? "logit_" + names[static_cast<size_t>(i)]
                                                                     : core::format("output_{}", i));
  }
  const bool has_labels = task.kind == config::TaskKind::multilabel;
  return std::make_unique<NumberTable>(names, output_names, has_labels ? task.options.threshold : std::vector<double>(),
                                       wanted);
}

std::string table_csv(const engine::ResultTable& table) {
  std::vector<std::string> cells = {table.corner};
  if (!table.second_corner.empty()) cells.push_back(table.second_corner);
  cells.insert(cells.end(), table.columns.begin(), table.columns.end());
  std::string csv = core::csv_row(cells) + "\n";
  for (const engine::ResultTable::Row& row : table.rows) {
    cells = {row.name};
    if (!table.second_corner.empty()) cells.push_back(row.second_name);
    for (size_t i = 0; i < row.values.size(); ++i) {
      const double value = row.values[i];
      cells.push_back(std::isnan(value)         ? ""
                      : i < table.whole_columns ? core::format("{:.0f}", value)
                                                : core::format("{:.6f}", value));
    }
    csv += core::csv_row(cells) + "\n";
  }
  return csv;
}

}  // namespace stoker::train
