// SPDX-License-Identifier: Apache-2.0
// Predictions and targets of each sample of a split, as plain values.
#pragma once

#include <cstdint>
#include <vector>

#include "config/option_values.h"

namespace stoker::statistics {

struct EvaluatedSamples {
  config::TaskKind task = config::TaskKind::multiclass;
  int64_t columns = 0;     ///< classes of multiclass, 1 of binary, else labels or targets
  double threshold = 0.5;  ///< binary, multilabel: positive is predicted from this probability on

  std::vector<int64_t> samples;  ///< [n] index in the source
  std::vector<float> loss;       ///< [n]

  // multiclass
  std::vector<int32_t> truth_class, predicted_class;  ///< [n]
  std::vector<uint8_t> in_top5;                       ///< [n] 0 or 1
  std::vector<float> confidence;                      ///< [n] probability of the predicted class

  // the others
  std::vector<float> outputs;  ///< [n, columns] logits of labels, numbers in the unit of the targets
  std::vector<float> truth;    ///< [n, columns] 0 or 1, or numbers

  int64_t count() const { return static_cast<int64_t>(samples.size()); }
};

}  // namespace stoker::statistics
