// SPDX-License-Identifier: Apache-2.0
// What the value of an option can be, besides numbers and text: automatic, an interval, one of a few words.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

namespace stoker::config {

/// A value that was given, or that resolve() has to choose. value() of one that was not given throws std::logic_error.
template <typename T>
class Auto {
 public:
  Auto() = default;
  Auto(T value) : value_(std::move(value)), chosen_(true) {}  // NOLINT: reads as the value it holds

  bool is_auto() const { return !chosen_; }
  const T& value() const {
    if (!chosen_) throw std::logic_error("an automatic option was read before resolve()");
    return value_;
  }

 private:
  T value_{};
  bool chosen_ = false;
};

/// A value of ResolvedOptions: plain.
template <typename T>
using Plain = T;

/// An interval in one of three units; what `--save-every 1e`, `2000u` or `10m` mean.
struct Interval {
  enum class Unit { never, epochs, updates, seconds };
  Unit unit = Unit::never;
  double amount = 0;  ///< > 0 unless never; whole for updates, and for epochs from 1 on

  static Interval epochs(double n) { return {Unit::epochs, n}; }
  static Interval updates(double n) { return {Unit::updates, n}; }
  static Interval seconds(double s) { return {Unit::seconds, s}; }
};

enum class DatasetType { automatic, idx, cifar, numpy, folder, csv, biwi, w300lp, shards, clips, hdf5 };
/// Which frames of a video make a clip: spread over all of it, or a stride apart from a place drawn at random.
enum class FrameSampling { uniform, stride };
/// What stands between the fields of a CSV file; automatic: derived from its first line.
enum class CsvDelimiter { automatic, comma, semicolon, tab };
/// Of --input-range: 0.1 and 99.9 % of the numbers lie below; measured at the start.
inline const std::vector<double> kPercentiles = {0, 0};
enum class OnBadImage { fail, skip, repair };
/// With skip: as good as any number of bad images.
inline constexpr int64_t kUnlimitedBad = 1'000'000'000;
enum class TrainCrop { none, center, random_resized, padded };
enum class EvalCrop { none, center };
enum class AugmentInterpolation { nearest, bilinear };
enum class OptimizerKind { sgd, adam, adamw };
enum class ScheduleKind { constant, step, multistep, cosine, one_cycle, polynomial };
enum class AmpDtype { float16, bfloat16 };
enum class ProveBackend { off, automatic, full };
enum class ClipMode { norm, value };
/// Where samples are kept once they have been used: nowhere, decoded, or as they are stored.
enum class CacheTier { none, ram, compressed };
/// How batches reach the device: made by workers and copied, or made on the device of pixels that stay there.
enum class FeedKind { loader, resident };
/// Whether the host launches each operation of an update, or a graph of all of them.
enum class Graphs { off, on };
enum class TaskKind { multiclass, binary, multilabel, regression, head_pose };
enum class RegressionLoss { l1, l2, smooth_l1 };
enum class PoseHead { direct, binned };
/// What can decide which checkpoint is best; each task has some of them (see config/task_facts.h).
enum class EvalMetric {
  loss,
  top1,
  top5,
  accuracy,
  exact_match,
  precision,
  recall,
  f1,
  f1_micro,
  roc_auc,
  pr_auc,
  mae,
  rmse,
  r2
};
/// Views of an image whose outputs are averaged wherever a network is judged or asked.
enum class TestTimeAugmentation { none, hflip };
/// In which order processes add gradients: of replicas, or of the transport.
enum class Exchange { exact, fast };

/// Whether another number of processes gives other bits.
constexpr bool bits_depend_on_ranks(Exchange exchange) {
  switch (exchange) {
    case Exchange::exact: return false;
    case Exchange::fast: return true;
  }
  return true;
}

}  // namespace stoker::config
