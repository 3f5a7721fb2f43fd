// SPDX-License-Identifier: Apache-2.0
// Evaluation and prediction results as CSV (RFC 4180).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/task/task.h"

namespace stoker::app {

/// Quoted when it needs to be.
std::string csv_field(const std::string& text);

/// What is known of one image.
struct ImageResult {
  std::string path;
  int64_t label = -1;                  ///< -1: unknown
  const float* targets = nullptr;      ///< one per target; null: unknown
  const float* outputs = nullptr;      ///< the network's raw outputs, finite
  const float* predictions = nullptr;  ///< see engine::Task::predictions
};

/// One row per image: path, what is true (if known), what the network says, and with `logits` its raw outputs.
class ImageTable {
 public:
  virtual ~ImageTable() = default;
  virtual void add(const ImageResult& result) = 0;
  const std::string& text() const { return text_; }

 protected:
  std::string text_;
};

/// `names`: of the outputs (multiclass), the two classes (binary) or the targets; `outputs` of the network.
///   multiclass   path[,true],class,probability[,<class>...]
///   binary       path[,true],class,probability_<class 1>[,logit]
///   multilabel   path[,true_<label>...],<label>...[,logit_<label>...]   (probabilities)
///   regression   path[,true_<target>...],<target>...[,output_0...]
///   head-pose    the same in degrees
std::unique_ptr<ImageTable> make_image_table(const engine::TaskSpec& task, const std::vector<std::string>& names,
                                             int64_t outputs, bool truth, bool logits);

/// A row per class or target; undefined figures are left empty.
std::string table_csv(const engine::ResultTable& table);

}  // namespace stoker::app
