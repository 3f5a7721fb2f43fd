// SPDX-License-Identifier: Apache-2.0
// A task: how many outputs the network needs, what a batch costs, and what its results are judged
// by. One file per task implements it. Independent of the loop, of models and of files.
#pragma once

#include <torch/types.h>

#include <memory>
#include <string>
#include <vector>

#include "config/options.h"
#include "data/feed/device_feed.h"
#include "engine/run/events.h"

namespace stoker::engine {

/// Classes, above which the confusion is a list of pairs and no matrix.
inline constexpr int64_t kMostInMatrix = 1000;

/// Bytes of the counts and tables of an evaluation of `images` images, until they are written: per class or output, and
/// of a classifier the confusion, as a matrix or as pairs, of which there may be as many as images.
int64_t table_bytes(config::TaskKind kind, int64_t outputs, int64_t images);

/// Figures with names for rows and columns, for people and CSV.
struct ResultTable {
  struct Row {
    std::string name;
    std::vector<double> values;  ///< one per column; NaN: undefined
    std::string second_name = {};
  };
  std::string name;    ///< file name without .csv: "per_class"
  std::string corner;  ///< heads the column of row names: "class"
  std::vector<std::string> columns;
  size_t whole_columns = 0;  ///< the number of columns, from the left, that are counts
  std::vector<Row> rows;
  std::string second_corner = {};  ///< heads a column of second names; empty: there is none
};

/// Gathers results over a split. Everything stays on the device until it is read.
class EvalMetrics {
 public:
  virtual ~EvalMetrics() = default;
  /// outputs float32 [B, num_outputs], B > 0. No host sync.
  virtual void add(const torch::Tensor& outputs, const data::Batch& batch) = 0;
  /// With values, in the order of Task::metrics(). An undefined one is NaN.
  virtual std::vector<Metric> read() const = 0;
  /// Per class or target; `names` are those of the outputs, or of the classes of a binary task.
  virtual std::vector<ResultTable> tables(const std::vector<std::string>& names) const = 0;
};

/// Immutable; its tensors lie on one device.
class Task {
 public:
  virtual ~Task() = default;
  virtual int64_t num_outputs() const = 0;
  /// Sum over the batch of what training minimises: float32 []. outputs [B, num_outputs] float32 or the
  /// autocast type.
  virtual torch::Tensor training_loss_sum(const torch::Tensor& outputs, const data::Batch& batch) const = 0;
  /// training_loss_sum() of images of which `share` is their own and the rest that of `partners`, the batch with the
  /// partners' labels. `shares`: both shares as float32 [2] on the device; undefined: `share` counts.
  virtual torch::Tensor mixed_loss_sum(const torch::Tensor& outputs, const data::Batch& batch,
                                       const data::Batch& partners, double share, const torch::Tensor& shares) const;
  /// The loss sum as evaluation reports it: without smoothing and without weights of classes. For classes and labels
  /// cross entropy, whichever loss is trained, so that runs can be compared.
  virtual torch::Tensor eval_loss_sum(const torch::Tensor& outputs, const data::Batch& batch) const = 0;
  /// The one figure that is shown while training, by name and unit, and its sum over a batch: [] (hits, or
  /// errors).
  virtual Metric score() const = 0;
  virtual torch::Tensor score_sum(const torch::Tensor& outputs, const data::Batch& batch) const = 0;
  /// The metrics besides the loss, without values; the first two are the ones to look at.
  virtual std::vector<Metric> metrics() const = 0;
  /// `with_tables`: tables() will be called.
  virtual std::unique_ptr<EvalMetrics> make_metrics(bool with_tables) const = 0;
  /// The predictions of the outputs, float32: probabilities per class or label, numbers in the unit of the targets.
  virtual torch::Tensor predictions(const torch::Tensor& outputs) const = 0;
};

struct TaskSpec {
  config::TaskKind kind = config::TaskKind::multiclass;
  config::ResolvedTaskOptions options;  ///< resolved
  double label_smoothing = 0;
  int64_t num_classes = 0;  ///< or targets
};
std::unique_ptr<Task> make_task(const TaskSpec& spec, torch::Device device);

/// Logits as probabilities are computed from them.
inline torch::Tensor tempered(const torch::Tensor& logits, double temperature) {
  return temperature == 1 ? logits : logits / temperature;
}

/// Throws Error{data} unless the task gives a prediction for each of `names`; for two classes of a binary task one.
/// `what` holds both: the path of a checkpoint.
void require_prediction_each(const Task& task, config::TaskKind kind, size_t names, const std::string& what);

/// A metric under its name in --eval-metric, with `_` for `-` as columns have it.
Metric metric(config::EvalMetric which, MetricUnit unit, double value = 0);

// One factory per file.
std::unique_ptr<Task> make_multiclass_task(const TaskSpec& spec, torch::Device device);
std::unique_ptr<Task> make_label_task(const TaskSpec& spec, torch::Device device);
std::unique_ptr<Task> make_regression_task(const TaskSpec& spec, torch::Device device);
std::unique_ptr<Task> make_head_pose_task(const TaskSpec& spec, torch::Device device);

// Targets in their own unit and as the network learns them: (target - mean) / scale.

class TargetScaling {
 public:
  TargetScaling(const config::ResolvedTaskOptions& options, torch::Device device)
      : mean_(row(options.target_mean, 0, device)), scale_(row(options.target_scale, 1, device)) {}

  /// All float32 [B, T].
  torch::Tensor scaled(const torch::Tensor& targets) const { return (targets - mean_) / scale_; }
  torch::Tensor unscaled(const torch::Tensor& outputs) const { return outputs.to(at::kFloat) * scale_ + mean_; }
  const torch::Tensor& scale() const { return scale_; }

 private:
  static torch::Tensor row(const std::vector<double>& values, double otherwise, torch::Device device) {
    return torch::tensor(values.empty() ? std::vector<double>{otherwise} : values, at::kDouble)
        .to(at::kFloat)
        .to(device);
  }

  torch::Tensor mean_, scale_;  // float32 [1] or [T]
};

}  // namespace stoker::engine
