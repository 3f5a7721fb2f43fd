// SPDX-License-Identifier: Apache-2.0
// How long a network trains on a batch of noise in different ways: in another precision, layout or number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "engine/probe/probe_input.h"
#include "engine/step/updater.h"

namespace stoker::engine {

/// One way to train the same network.
struct TrainingVariant {
  Learner* learner = nullptr;  ///< with weights in the layout of `settings`
  ProbeSettings settings;      ///< and the precision
  int64_t threads = 1;         ///< number of CPU threads
};

/// On a CPU: seconds of forward and backward on the same number of images, for each way; 0: this build or this CPU
/// cannot compute it. Of several passes the least by the thread's own time, the median by the wall's; in the order of
/// compared_seconds(). Large squares are tried smaller. Takes about `least_seconds` for each way,
/// half of that where it is clear whether one is `gain_that_counts` times as fast as the first, or two passes over 2
/// images where these are long. Learners and number of threads are as before afterwards. Throws
/// what the first way throws, core::StopRequested, and any error of memory that ran out.
std::vector<double> training_seconds(const std::vector<TrainingVariant>& ways, const Task& task, PassClock clock,
                                     int64_t batch_size, double least_seconds, double gain_that_counts);

/// Seconds that pass in forward and backward on `images` images, the median of a few passes; on a CPU, with as many
/// threads as `way` has, whatever else keeps CPUs busy. Of noise. Takes about `least_seconds`, or one pass where that
/// is long. Learner and number of threads are as before afterwards. Throws as training_seconds().
double pass_seconds(const TrainingVariant& way, const Task& task, int64_t images, double least_seconds);

// The order of passes when ways of training are compared, so that neither what a first pass makes nor a neighbour's
// burst decides.

constexpr double kVeryLongPass = 0.4;  ///< seconds; where one takes longer, one is enough

struct ComparedPasses {
  size_t ways = 0;
  std::function<void(size_t way, int64_t images)> take;  ///< from now on this way computes `images` images
  std::function<void(size_t way)> begin_turn;            ///< before passes of another way than the last one
  std::function<double(size_t way)> pass;                ///< computes; returns seconds
  std::function<bool(size_t way)> can_pass;              ///< computes once; false: this way cannot be computed here
  bool turns_disturb = false;  ///< the first pass of a turn is slower than the others: threads are made anew
  bool takes_median = false;   ///< true: the median of several passes counts; false: the least
  /// As many times as fast as the first way another one is to be, to be chosen; 0: nothing is chosen.
  double gain_that_counts = 0;
};

/// Seconds of a pass over the same number of images for each way, 0 for one that cannot be computed. A way's first
/// pass, which makes plans and buffers, is never counted, nor is the first of a turn where turns disturb. The ways have
/// turns in two rounds, each of one counted pass or more, until a way has about `least_seconds` of them. There is no
/// second round where the first decides clearly; for another way than the first, only passes that neighbours do not
/// disturb can decide (the least, not the median). The images are doubled, from 2 up to `batch_size`,
/// until a pass of the first way takes some time; numbers for which it cannot take as long, by the time of 2, are left
/// out. Where one of 2 images takes long, there is one counted pass for each way, and a way that is far slower than the
/// best is the last: those after it, with fewer threads still, count as slow as that one. Throws what the first way and
/// `take` throw.
std::vector<double> compared_seconds(const ComparedPasses& passes, int64_t batch_size, double least_seconds);

// Updates on real data, as training does them, for as long as somebody measures how fast they are.

/// The time of `updates` updates, from when the device had nothing left to do until it had done them.
struct MeasuredUpdates {
  int64_t updates = 0, images = 0;
  double seconds = 0;
  double data_wait_seconds = 0;  ///< part of `seconds` in which batches were awaited

  double images_per_second() const { return static_cast<double>(images) / seconds; }
};

/// Trains epoch after epoch from the first batch of epoch 0 on. The weights change.
class MeasuredTraining {
 public:
  /// All but settings are borrowed. `timer`, `group`: see Updater. `feed` has the batches of this rank.
  MeasuredTraining(const UpdaterSettings& settings, const Task& task, Learner& learner, data::DeviceFeed& feed,
                   const EpochPlan& plan, const optim::UpdateRates& rates, StepTimer* timer = nullptr,
                   Group& group = alone());

  /// Those of the next updates.
  void set_rates(const optim::UpdateRates& rates) { rates_ = rates; }
  /// Computes `updates` updates; the device has done them when this returns. Throws as training does,
  /// core::StopRequested.
  void warm_up(int64_t updates);
  /// Updates until `is_enough` returns true for those since the call, at least one. The device must have done all that
  /// was requested of it before. Throws as warm_up().
  MeasuredUpdates measure(const std::function<bool(const MeasuredUpdates& so_far)>& is_enough);
  /// The mean loss of the images since the last call; NaN without one.
  double take_loss();

 private:
  int64_t update();

  const EpochPlan plan_;
  optim::UpdateRates rates_;
  Learner& learner_;
  data::DeviceFeed& feed_;
  Updater updater_;
  EpochFeed batches_;
  int64_t epoch_ = 0, update_in_epoch_ = 0;
};

}  // namespace stoker::engine
