// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/training_speed.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <exception>
#include <memory>

#include "core/log.h"
#include "core/system/stop_signal.h"
#include "core/time/clock.h"
#include "engine/device/device.h"
#include "engine/probe/probe_input.h"

namespace stoker::engine {
namespace {

/// One way, tried again and again.
class Trial {
 public:
  Trial(const TrainingVariant& way, const Task& task, PassClock clock)
      : way_(way), clock_(clock), step_(way.settings.update, task, *way.learner) {}

  void take(int64_t images, int64_t side) { batch_ = noise_batch(way_.settings, images, side, way_.learner->device); }
  /// With as many threads as are set.
  double pass() {
    core::throw_if_stopped();
    const double begin = seconds_by(clock_);
    step_.accumulate(batch_, batch_.planned_images);
    way_.learner->optimizer->zero_grad();
    return seconds_by(clock_) - begin;
  }
  /// False where LibTorch or oneDNN have no way to compute it.
  bool can_pass() {
    try {
      pass();
      return true;
    } catch (const core::StopRequested&) {
      throw;
    } catch (const std::exception& error) {
      if (is_out_of_memory(error)) throw;
      return false;
    }
  }

 private:
  const TrainingVariant& way_;
  const PassClock clock_;
  UpdateStep step_;
  data::Batch batch_;
};

/// Once per learner, however many variants use it.
std::vector<std::unique_ptr<ScopedSnapshot>> snapshots_of(const std::vector<TrainingVariant>& ways) {
  std::vector<std::unique_ptr<ScopedSnapshot>> kept;
  std::vector<const Learner*> seen;
  for (const TrainingVariant& way : ways) {
    if (std::find(seen.begin(), seen.end(), way.learner) != seen.end()) continue;
    seen.push_back(way.learner);
    kept.push_back(std::make_unique<ScopedSnapshot>(*way.learner));
    way.learner->model->train();
  }
  return kept;
}

}  // namespace

std::vector<double> training_seconds(const std::vector<TrainingVariant>& ways, const Task& task, PassClock clock,
                                     int64_t batch_size, double least_seconds, double gain_that_counts) {
  const auto undisturbed = snapshots_of(ways);
  const TrainingVariant& first = ways.front();
  const int64_t side = side_to_try(*first.learner->model, first.settings, first.learner->device);
  std::deque<Trial> trials;
  for (const TrainingVariant& way : ways) trials.emplace_back(way, task, clock);
  ComparedPasses passes;
  passes.ways = ways.size();
  passes.take = [&](size_t way, int64_t images) { trials[way].take(images, side); };
  passes.begin_turn = [&](size_t way) { at::set_num_threads(static_cast<int>(ways[way].threads)); };
  passes.pass = [&](size_t way) { return trials[way].pass(); };
  passes.can_pass = [&](size_t way) { return trials[way].can_pass(); };
  passes.turns_disturb = std::any_of(ways.begin(), ways.end(),
                                     [&](const TrainingVariant& way) { return way.threads != ways.front().threads; });
  passes.takes_median = clock == PassClock::wall;
  passes.gain_that_counts = gain_that_counts;
  const ThreadCount as_before(at::get_num_threads());
  const double begin = seconds_by(PassClock::wall);
  std::vector<double> seconds = compared_seconds(passes, batch_size, least_seconds);
  core::log_debug("training: tried in {} ways for {:.2f} s", ways.size(), seconds_by(PassClock::wall) - begin);
  return seconds;
}

double pass_seconds(const TrainingVariant& way, const Task& task, int64_t images, double least_seconds) {
  constexpr int kLeastPasses = 3;
  const ScopedSnapshot undisturbed(*way.learner);
  way.learner->model->train();
  const ThreadCount threads(way.threads);  // once: threads that are made anew for each pass have no turn at a busy CPU
  Trial trial(way, task, PassClock::wall);
  trial.take(images, side_of(way.settings));
  if (const double first = trial.pass(); first > kVeryLongPass) return first;
  std::vector<double> passes;
  const double begin = seconds_by(PassClock::wall);
  while (passes.size() < kLeastPasses || seconds_by(PassClock::wall) - begin < least_seconds)
    passes.push_back(trial.pass());
  std::sort(passes.begin(), passes.end());
  return passes[passes.size() / 2];
}

namespace {

// Seconds. Some loops are chosen by the number of images: EfficientNet-B0 of 96 pixels trains 1.1 times as fast
// channels-last with 4 images and 1.6 times with 16.
constexpr double kLongPass = 0.15;
constexpr double kFarSlower = 1.5;
constexpr int64_t kFewest = 2;  // of one alone batch norm may not be able to train

double typical(std::vector<double> seconds, bool takes_median) {
  std::sort(seconds.begin(), seconds.end());
  return takes_median ? seconds[seconds.size() / 2] : seconds.front();
}

/// Counted passes until `spent` is `least_seconds`; at least one, where none has been spent yet.
void count(const ComparedPasses& passes, size_t way, double least_seconds, double spent, std::vector<double>& counted) {
  while (spent == 0 || spent < least_seconds) {
    counted.push_back(passes.pass(way));
    spent += counted.back();
  }
}

/// For passes that take long, `first` for the first variant: each other way once, until one is far slower.
std::vector<double> one_round(const ComparedPasses& passes, double first) {
  std::vector<double> seconds = {first};
  double best = first;
  while (seconds.size() < passes.ways) {
    const size_t way = seconds.size();
    if (seconds.back() > kFarSlower * best) {
      seconds.push_back(seconds.back());
      continue;
    }
    passes.begin_turn(way);
    passes.take(way, kFewest);
    seconds.push_back(passes.can_pass(way) ? passes.pass(way) : 0);
    if (seconds.back() > 0) best = std::min(best, seconds.back());
  }
  return seconds;
}

/// True where another round would not change what is chosen.
bool is_clear(const ComparedPasses& passes, const std::vector<size_t>& able,
              const std::vector<std::vector<double>>& seconds) {
  constexpr double kClearly = 1.25;  // times further from the gain that counts than that
  if (passes.gain_that_counts == 0 || able.size() < 2) return false;
  const double first = typical(seconds[0], passes.takes_median);
  double best = typical(seconds[able[1]], passes.takes_median);
  for (const size_t way : able)
    if (way > 0) best = std::min(best, typical(seconds[way], passes.takes_median));
  const double gain = first / best;
  return gain * kClearly < passes.gain_that_counts ||
         (!passes.takes_median && gain > kClearly * passes.gain_that_counts);
}

}  // namespace

std::vector<double> compared_seconds(const ComparedPasses& passes, int64_t batch_size, double least_seconds) {
  constexpr int kRounds = 2;
  passes.begin_turn(0);
  const auto seconds_of = [&](int64_t images) {
    passes.take(0, images);
    passes.pass(0);
    return passes.pass(0);
  };
  int64_t images = kFewest;
  double taken = seconds_of(images);
  if (taken > kVeryLongPass) return one_round(passes, taken);
  // Twice the images take at most twice as long.
  for (double at_most = 2 * taken; images < batch_size && at_most < kLongPass; at_most *= 2)
    images = std::min(2 * images, batch_size);
  if (images > kFewest) taken = seconds_of(images);
  while (images < batch_size && taken < kLongPass) {
    images = std::min(2 * images, batch_size);
    taken = seconds_of(images);
  }
  std::vector<std::vector<double>> seconds(passes.ways);
  seconds[0].push_back(taken);
  count(passes, 0, least_seconds / kRounds, taken, seconds[0]);
  std::vector<size_t> able = {0};  // ways that can be computed at all
  for (size_t way = 1; way < passes.ways; ++way) {
    passes.begin_turn(way);
    passes.take(way, images);
    if (!passes.can_pass(way)) continue;
    able.push_back(way);
    count(passes, way, least_seconds / kRounds, 0, seconds[way]);
  }
  for (int round = 1; round < kRounds && !is_clear(passes, able, seconds); ++round) {
    for (const size_t way : able) {
      passes.begin_turn(way);
      if (passes.turns_disturb) passes.pass(way);
      count(passes, way, least_seconds / kRounds, 0, seconds[way]);
    }
  }
  std::vector<double> result(passes.ways, 0);
  for (const size_t way : able) result[way] = typical(std::move(seconds[way]), passes.takes_median);
  return result;
}

MeasuredTraining::MeasuredTraining(const UpdaterSettings& settings, const Task& task, Learner& learner,
                                   data::DeviceFeed& feed, const EpochPlan& plan, const optim::UpdateRates& rates,
                                   StepTimer* timer, Group& group)
    : plan_(plan),
      rates_(rates),
      learner_(learner),
      feed_(feed),
      updater_(settings, task, learner, timer, group),
      batches_(feed, group.size()) {
  learner.model->train();
  batches_.begin_epoch(epoch_, /*first_batch=*/0);
}

/// Returns its images.
int64_t MeasuredTraining::update() {
  if (update_in_epoch_ == plan_.updates()) {
    batches_.begin_epoch(++epoch_, /*first_batch=*/0);
    update_in_epoch_ = 0;
  }
  return updater_.update(batches_, plan_.window(epoch_, update_in_epoch_++), rates_);
}

void MeasuredTraining::warm_up(int64_t updates) {
  for (int64_t i = 0; i < updates; ++i) update();
  synchronize(learner_.device);
}

double MeasuredTraining::take_loss() {
  const SumValues sums = updater_.sums().read();
  updater_.sums().reset();
  return sums.loss_sum / static_cast<double>(sums.images);  // 0 / 0 is NaN
}

MeasuredUpdates MeasuredTraining::measure(const std::function<bool(const MeasuredUpdates&)>& is_enough) {
  MeasuredUpdates measured;
  const double waited_before = feed_.loader().stats().consumer_wait_seconds;
  const auto begin = std::chrono::steady_clock::now();
  do {
    measured.images += update();
    ++measured.updates;
    measured.seconds = core::seconds_since(begin);
  } while (!is_enough(measured));
  synchronize(learner_.device);
  measured.seconds = std::max(1e-9, core::seconds_since(begin));
  measured.data_wait_seconds = feed_.loader().stats().consumer_wait_seconds - waited_before;
  return measured;
}

}  // namespace stoker::engine
