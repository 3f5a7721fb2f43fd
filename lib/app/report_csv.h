// SPDX-License-Identifier: Apache-2.0
// Evaluation and prediction results as CSV (RFC 4180).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stoker::app {

/// Quoted when it needs to be.
std::string csv_field(const std::string& text);

/// path,class,probability: what the network takes each image for, one row per image. With `truth` the column true
/// follows path; with `logits` a column of raw scores per class stands at the end.
class PredictionTable {
 public:
  PredictionTable(std::vector<std::string> class_names, bool truth, bool logits);

  /// `logits`: one score per class, finite. `truth`: a class, only read when there is such a column.
  void add(const std::string& path, int64_t truth, const float* logits);
  const std::string& text() const { return text_; }

 private:
  const std::vector<std::string> class_names_;
  const bool truth_, logits_;
  std::string text_;
};

/// counts[true class][predicted class].
using ConfusionMatrix = std::vector<std::vector<int64_t>>;

/// class,images,predicted,precision,recall,f1 with a row per class and a macro average; an undefined ratio (no
/// image, or none predicted) is 0, as scikit-learn's zero_division=0.
std::string per_class_csv(const ConfusionMatrix& counts, const std::vector<std::string>& class_names);
std::string confusion_csv(const ConfusionMatrix& counts, const std::vector<std::string>& class_names);

}  // namespace stoker::app
