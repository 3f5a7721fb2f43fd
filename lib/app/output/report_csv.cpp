// SPDX-License-Identifier: Apache-2.0
#include "app/output/report_csv.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/format.h"

namespace stoker::app {
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

namespace {

/// The largest score wins.
class ClassTable : public ImageTable {
 public:
  ClassTable(std::vector<std::string> class_names, bool truth, bool logits)
      : class_names_(std::move(class_names)), truth_(truth), logits_(logits) {
    text_ = truth_ ? "path,true,class,probability" : "path,class,probability";
    if (logits_) {
      for (const std::string& name : class_names_) text_ += "," + csv_field(name);
    }
    text_ += "\n";
  }

  void add(const ImageResult& result) override {
    const float* const logits = result.outputs;
    const float* const end = logits + class_names_.size();
    const float* const best = std::max_element(logits, end);
    double sum = 0;  // of softmax's denominator, scaled by the largest term
    for (const float* score = logits; score != end; ++score) sum += std::exp(double{*score} - double{*best});
    text_ += csv_field(result.path);
    if (truth_) text_ += "," + csv_field(class_names_[static_cast<size_t>(result.label)]);
    text_ += "," + csv_field(class_names_[static_cast<size_t>(best - logits)]) + core::format(",{:.9g}", 1 / sum);
    if (logits_) {
      for (const float* score = logits; score != end; ++score) text_ += core::format(",{:.9g}", *score);
    }
    text_ += "\n";
  }

 private:
  const std::vector<std::string> class_names_;
  const bool truth_, logits_;
};

/// The probability of class 1 reaches the threshold or not.
class BinaryTable : public ImageTable {
 public:
  BinaryTable(std::vector<std::string> class_names, double threshold, bool truth, bool logits)
      : class_names_(std::move(class_names)),
        least_logit_(std::log(threshold / (1 - threshold))),
        truth_(truth),
        logits_(logits) {
    text_ = std::string("path") + (truth_ ? ",true" : "") + ",class," + csv_field("probability_" + class_names_[1]) +
            (logits_ ? ",logit" : "") + "\n";
  }

  void add(const ImageResult& result) override {
    text_ += csv_field(result.path);
    if (truth_) text_ += "," + csv_field(class_names_[static_cast<size_t>(result.label)]);
    text_ += "," + csv_field(class_names_[result.outputs[0] >= least_logit_ ? 1 : 0]);
    text_ += core::format(",{:.9g}", result.predictions[0]);
    if (logits_) text_ += core::format(",{:.9g}", result.outputs[0]);
    text_ += "\n";
  }

 private:
  const std::vector<std::string> class_names_;
  const double least_logit_;
  const bool truth_, logits_;
};

/// A number per target.
class NumberTable : public ImageTable {
 public:
  NumberTable(const std::vector<std::string>& names, const std::vector<std::string>& output_names, bool truth)
      : targets_(names.size()), outputs_(output_names.size()), truth_(truth) {
    text_ = "path";
    if (truth_) {
      for (const std::string& name : names) text_ += "," + csv_field("true_" + name);
    }
    for (const std::string& name : names) text_ += "," + csv_field(name);
    for (const std::string& name : output_names) text_ += "," + csv_field(name);
    text_ += "\n";
  }

  void add(const ImageResult& result) override {
    text_ += csv_field(result.path);
    if (truth_) add_numbers(result.targets, targets_);
    add_numbers(result.predictions, targets_);
    add_numbers(result.outputs, outputs_);
    text_ += "\n";
  }

 private:
  void add_numbers(const float* numbers, size_t count) {
    for (size_t i = 0; i < count; ++i) text_ += core::format(",{:.9g}", numbers[i]);
  }

  size_t targets_;
  size_t outputs_;  ///< 0: raw outputs are not wanted
  bool truth_;
};

}  // namespace

std::unique_ptr<ImageTable> make_image_table(const engine::TaskSpec& task, const std::vector<std::string>& names,
                                             int64_t outputs, bool truth, bool logits) {
  if (task.kind == config::TaskKind::multiclass) return std::make_unique<ClassTable>(names, truth, logits);
  if (task.kind == config::TaskKind::binary) {
    return std::make_unique<BinaryTable>(names, task.options.threshold, truth, logits);
  }
  std::vector<std::string> output_names;
  for (int64_t i = 0; logits && i < outputs; ++i) {
    output_names.push_back(task.kind == config::TaskKind::multilabel ? "logit_" + names[static_cast<size_t>(i)]
                                                                     : core::format("output_{}", i));
  }
  return std::make_unique<NumberTable>(names, output_names, truth);
}

std::string table_csv(const engine::ResultTable& table) {
  std::string csv = csv_field(table.corner);
  for (const std::string& column : table.columns) csv += "," + csv_field(column);
  csv += "\n";
  for (const engine::ResultTable::Row& row : table.rows) {
    csv += csv_field(row.name);
    for (size_t i = 0; i < row.values.size(); ++i) {
      if (std::isnan(row.values[i])) {
        csv += ",";
      } else {
        csv +=
            i < table.whole_columns ? core::format(",{:.0f}", row.values[i]) : core::format(",{:.6f}", row.values[i]);
      }
    }
    csv += "\n";
  }
  return csv;
}

}  // namespace stoker::app
