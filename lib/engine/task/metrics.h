// SPDX-License-Identifier: Apache-2.0
// Sums of loss and score that stay on the device until they are read, which is the host sync. The task defines the
// score.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <tuple>
#include <vector>

#include "config/options.h"
#include "data/feed/device_feed.h"
#include "engine/run/events.h"
#include "statistics/weighted_metrics.h"

namespace stoker::engine {

// Precision, recall and F1 from counts. Torch-free.
// An undefined ratio (nothing of a class, or none predicted) is 0, as scikit-learn's zero_division=0 has it.

/// The counts of one class or label, over a split.
struct ClassCounts {
  int64_t hits = 0;    ///< predicted and true
  int64_t actual = 0;  ///< true
  int64_t predicted = 0;
};

struct ClassScores {
  double precision = 0, recall = 0, f1 = 0;
};

ClassScores scores_of(const ClassCounts& counts);
/// Mean over all classes, absent ones included: scikit-learn's average="macro" with labels= all of them.
ClassScores macro_average(const std::vector<ClassCounts>& classes);
/// From the sums over all classes.
ClassScores micro_average(const std::vector<ClassCounts>& classes);

/// statistics::agreement_of(), as metrics of a task: the four behind f1.
std::vector<Metric> agreement_metrics(const std::vector<ClassCounts>& classes);
/// The counts of both classes of a yes or no, from those of yes.
std::vector<ClassCounts> both_classes(const ClassCounts& positive, int64_t images);

struct RunProgress;

struct SumValues {
  double loss_sum = 0;
  double score_sum = 0;
  int64_t images = 0;
};

/// Those of the epoch under way, as the state of a run keeps them.
SumValues epoch_sums(const RunProgress& at);
void set_epoch_sums(const SumValues& sums, RunProgress& at);

class RunningSums {
 public:
  explicit RunningSums(torch::Device device) : device_(device) { reset(); }

  void reset() { restore({}); }
  /// Continues from saved sums.
  void restore(const SumValues& values);
  /// Both [] of any real type, over `images` images; `score_sum` may be undefined. No host sync.
  void add(const torch::Tensor& loss_sum, const torch::Tensor& score_sum, int64_t images);
  /// Adds what `other` has summed. No host sync.
  void add(const RunningSums& other);
  /// A copy of the sums, which continues apart from these. No host sync.
  RunningSums copy() const;
  /// The sums so far: one host sync.
  SumValues read() const;
  /// The tensor that read() copies: float64 [2] on the device.
  const torch::Tensor& figures() const { return sums_; }
  SumValues read(const double* figures) const { return {figures[0], figures[1], images_}; }
  int64_t images() const { return images_; }  ///< counted on the host: no sync

 private:
  torch::Device device_;
  torch::Tensor sums_;  // float64 [2] on the device: loss, score
  int64_t images_ = 0;
};

// Results of yes-or-no labels, one (binary) or several (multilabel), gathered on the device and scored at the
// end.

// How well scores rank positives above negatives: areas under the ROC curve and under precision over recall.
// Exact: every distinct score is a threshold, equal scores stand together.

/// Areas, float64 [] on the device of the scores; computed without a host sync.
struct RankingAreas {
  /// Probability that a positive scores above a negative, ties counting half (Mann-Whitney; Fawcett 2006).
  /// NaN when there is no positive or no negative.
  torch::Tensor roc_auc;
  /// Average precision: sum over thresholds of (R_n - R_(n-1)) P_n, without interpolation, as scikit-learn
  /// has it; NaN when there is no positive.
  torch::Tensor pr_auc;
};

/// scores float [n], n > 0, no NaN; positive [n], bool or 0 and 1.
RankingAreas ranking_areas(const torch::Tensor& scores, const torch::Tensor& positive);

/// One row per sample, kept until it is read: 8 bytes per sample and label.
class GatheredRows {
 public:
  /// Both float [B, T] on the device; not copied, so that they must not be written to afterwards. No host
  /// sync.
  void add(const torch::Tensor& predicted, const torch::Tensor& truth);
  bool empty() const { return predicted_.empty(); }
  torch::Tensor predicted() const { return torch::cat(predicted_); }  ///< [n, T]; not when empty
  torch::Tensor truth() const { return torch::cat(truth_); }

 private:
  std::vector<torch::Tensor> predicted_, truth_;
};

/// 0 and 1 as float32 [B, labels], of a task of labels.
torch::Tensor label_truth(config::TaskKind kind, const data::Batch& batch);

struct LabelResults {
  int64_t images = 0;
  std::vector<ClassCounts> counts;      ///< [labels]
  std::vector<double> roc_auc, pr_auc;  ///< [labels]; see RankingAreas
  double accuracy = 0;                  ///< share of single answers that are right
  double exact_match = 0;               ///< share of samples with all answers right

  double mean_roc_auc() const;  ///< over labels that have positives and negatives; NaN when none has
  double mean_pr_auc() const;   ///< over labels that have positives; NaN when none has
};

/// Whether logits have at least the probability `thresholds`, of which there is one, or one per label: bool [n,
/// labels].
torch::Tensor reaches(const torch::Tensor& logits, const std::vector<double>& thresholds);
/// Logits against 0 and 1. Positive is what reaches the threshold. Two host syncs.
LabelResults label_results(const GatheredRows& rows, int64_t labels, const std::vector<double>& thresholds);

// How far numbers are from what they should be, per target.

/// All float64 [T] on the device of the inputs.
struct TargetErrors {
  torch::Tensor mae;   ///< mean absolute error, unit of the target
  torch::Tensor rmse;  ///< root of the mean squared error, unit of the target
  torch::Tensor r2;    ///< coefficient of determination; for a constant target 1 if met exactly, else 0
};

/// predicted, truth float [n, T], n > 0. As scikit-learn's mean_absolute_error, mean_squared_error and r2_score with
/// multioutput="raw_values", in float64.
TargetErrors target_errors(const torch::Tensor& predicted, const torch::Tensor& truth);

/// Differences of angles, brought to [-180, 180]. degrees, any shape; the gradient is that of the plain difference.
torch::Tensor angle_difference(const torch::Tensor& a, const torch::Tensor& b);

/// target_errors of angles in degrees: 359 and 1 are 2 apart. r2 is undefined.
TargetErrors angle_errors(const torch::Tensor& predicted, const torch::Tensor& truth);

// The class that outputs of several classes speak for.

/// logits [B, classes] -> int64 [B], the first of equal ones. The same as argmax(), which takes 0.4 us a value on CPUs
/// (LibTorch 1.13).
inline torch::Tensor likeliest(const torch::Tensor& logits) { return std::get<1>(logits.max(/*dim=*/1)); }

}  // namespace stoker::engine
