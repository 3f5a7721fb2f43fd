// SPDX-License-Identifier: Apache-2.0
#include "app/report_csv.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/format.h"

namespace stoker::app {
namespace {

double ratio_or_zero(double part, double whole) { return whole > 0 ? part / whole : 0; }

}  // namespace

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

PredictionTable::PredictionTable(std::vector<std::string> class_names, bool truth, bool logits)
    : class_names_(std::move(class_names)), truth_(truth), logits_(logits) {
  text_ = truth_ ? "path,true,class,probability" : "path,class,probability";
  if (logits_) {
    for (const std::string& name : class_names_) text_ += "," + csv_field(name);
  }
  text_ += "\n";
}

void PredictionTable::add(const std::string& path, int64_t truth, const float* logits) {
  const float* const end = logits + class_names_.size();
  const float* const best = std::max_element(logits, end);
  double sum = 0;  // of softmax's denominator, scaled by the largest term
  for (const float* score = logits; score != end; ++score) sum += std::exp(double{*score} - double{*best});
  text_ += csv_field(path);
  if (truth_) text_ += "," + csv_field(class_names_[static_cast<size_t>(truth)]);
  text_ += "," + csv_field(class_names_[static_cast<size_t>(best - logits)]) + core::format(",{:.9g}", 1 / sum);
  if (logits_) {
    for (const float* score = logits; score != end; ++score) text_ += core::format(",{:.9g}", *score);
  }
  text_ += "\n";
}

std::string per_class_csv(const ConfusionMatrix& counts, const std::vector<std::string>& class_names) {
  std::string csv = "class,images,predicted,precision,recall,f1\n";
  double precision_sum = 0, recall_sum = 0, f1_sum = 0;
  int64_t images_sum = 0;
  const size_t classes = class_names.size();
  for (size_t k = 0; k < classes; ++k) {
    int64_t images = 0, predicted = 0;
    for (size_t other = 0; other < classes; ++other) {
      images += counts[k][other];
      predicted += counts[other][k];
    }
    const auto hits = static_cast<double>(counts[k][k]);
    const double precision = ratio_or_zero(hits, static_cast<double>(predicted));
    const double recall = ratio_or_zero(hits, static_cast<double>(images));
    const double f1 = ratio_or_zero(2 * hits, static_cast<double>(images + predicted));
    csv += core::format("{},{},{},{:.6f},{:.6f},{:.6f}\n", csv_field(class_names[k]), images, predicted, precision, recall, f1);
    precision_sum += precision;
    recall_sum += recall;
    f1_sum += f1;
    images_sum += images;
  }
  const auto n = static_cast<double>(classes);
  return csv + core::format("macro average,{},{},{:.6f},{:.6f},{:.6f}\n", images_sum, images_sum, precision_sum / n,
                            recall_sum / n, f1_sum / n);
}

std::string confusion_csv(const ConfusionMatrix& counts, const std::vector<std::string>& class_names) {
  std::string csv = "true\\predicted";
  for (const std::string& name : class_names) csv += "," + csv_field(name);
  csv += "\n";
  for (size_t k = 0; k < class_names.size(); ++k) {
    csv += csv_field(class_names[k]);
    for (const int64_t count : counts[k]) csv += core::format(",{}", count);
    csv += "\n";
  }
  return csv;
}

}  // namespace stoker::app
