// SPDX-License-Identifier: Apache-2.0
// Evaluation and prediction results as CSV.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/task/task.h"

namespace stoker::train {

/// The results of one image.
struct ImageResult {
  std::string path;
  int64_t label = -1;                  ///< -1: unknown
  const float* targets = nullptr;      ///< one per target; null: unknown
  const float* outputs = nullptr;      ///< the network's raw outputs, finite
  const float* predictions = nullptr;  ///< see engine::Task::predictions
};

/// Columns of a table besides the path and the prediction.
struct TableColumns {
  bool truth = false, logits = false;
  bool errors = false;         ///< a last column, "error": empty, or why the image could not be read
  bool probabilities = false;  ///< multiclass: of every class
  int64_t top_k = 1;           ///< multiclass: classes that are named
  bool json = false;           ///< an object per line instead of CSV, with the columns as keys
};

/// One row per image: path, the truth (if known), the prediction, and with `logits` its raw outputs.
class ImageTable {
 public:
  virtual ~ImageTable() = default;
  virtual void add(const ImageResult& result) = 0;
  /// A row of an image that could not be read: its path and the error alone.
  void add_error(const std::string& path, const std::string& error);
  const std::string& text() const { return text_; }
  /// The text that was added since the last call; the heading comes first.
  std::string take_text() { return std::exchange(text_, ""); }

 protected:
  enum Kind { kText, kNumber, kTexts };

  explicit ImageTable(const TableColumns& wanted) : wanted_(wanted) {}
  const TableColumns& wanted() const { return wanted_; }
  /// All of them before the first row.
  void add_column(const std::string& name, Kind kind);
  void end_columns() {
    if (wanted_.errors) add_column("error", kText);
  }
  /// A cell per column less that of errors.
  void add_row(std::vector<std::string> cells, const std::string& error = "");

 private:
  std::string json_value(Kind kind, const std::string& cell) const;

  const TableColumns wanted_;
  std::vector<std::pair<std::string, Kind>> columns_;
  std::string text_;
};

/// `names`: of the outputs (multiclass), the two classes (binary) or the targets; `outputs` of the network.
///   multiclass   path[,true],class,probability[,class_2,probability_2...][,probability_<class>...][,<class>...]
///   binary       path[,true],class,probability_<class 1>[,logit]
///   multilabel   path[,true_<label>...|,labels],<label>...[,logit_<label>...]   (probabilities; labels: those that
///                reach the threshold, with | between)
///   regression   path[,true_<target>...],<target>...[,output_0...]
///   head-pose    the same in degrees
std::unique_ptr<ImageTable> make_image_table(const engine::TaskSpec& task, const std::vector<std::string>& names,
                                             int64_t outputs, const TableColumns& wanted);

/// path,feature_0,feature_1...: `features` outputs, whatever they are.
std::unique_ptr<ImageTable> make_feature_table(int64_t features, const TableColumns& wanted);

/// A row per class or target; undefined figures are left empty.
std::string table_csv(const engine::ResultTable& table);

}  // namespace stoker::train
