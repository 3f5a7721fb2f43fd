// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/training_speed.h"

#include <time.h>

#include <algorithm>
#include <deque>
#include <exception>
#include <memory>

#include "core/system/stop_signal.h"
#include "engine/device/out_of_memory.h"
#include "engine/probe/thread_count.h"

namespace stoker::engine {
namespace {

// Seconds. Some loops are chosen by the number of images: EfficientNet-B0 of 96 pixels trains 1.1 times as fast
// channels-last with 4 images and 1.6 times with 16.
constexpr double kLongPass = 0.15;
constexpr double kVeryLongPass = 0.4;  // seconds; one of each is enough

/// Of larger images two may not fit in memory; what they say about speed smaller ones say, too.
int64_t tried_side(const ProbeSettings& settings) {
  constexpr int64_t kTooLarge = 512, kEnough = 256;  // pixels
  const int64_t side = side_of(settings);
  const bool is_square = settings.input.end()[-1] == settings.input.end()[-2];
  return is_square && side > kTooLarge ? kEnough : side;
}

double now(PassClock clock) {
  timespec time = {};
  ::clock_gettime(clock == PassClock::wall ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// One way, tried again and again.
class Trial {
 public:
  Trial(const TrainingWay& way, const Task& task, PassClock clock)
      : way_(way), clock_(clock), step_(way.settings.update, task, *way.learner) {}

  void take(int64_t images) { take(images, tried_side(way_.settings)); }
  void take(int64_t images, int64_t side) { batch_ = noise_batch(way_.settings, images, side, way_.learner->device); }
  double pass() {
    core::throw_if_stopped();
    const ThreadCount threads(way_.threads);
    const double begin = now(clock_);
    step_.accumulate(batch_, batch_.planned_images);
    way_.learner->optimizer->zero_grad();
    return now(clock_) - begin;
  }
  /// False where LibTorch or oneDNN have no way to compute it.
  bool can_pass(double& seconds) {
    try {
      seconds = pass();
      return true;
    } catch (const core::StopRequested&) {
      throw;
    } catch (const std::exception& error) {
      if (is_out_of_memory(error)) throw;
      return false;
    }
  }

 private:
  const TrainingWay& way_;
  const PassClock clock_;
  UpdateStep step_;
  data::Batch batch_;
};

double typical(std::vector<double> seconds, PassClock clock) {
  std::sort(seconds.begin(), seconds.end());
  return clock == PassClock::wall ? seconds[seconds.size() / 2] : seconds.front();
}

/// Of each learner, however many ways use it.
std::vector<std::unique_ptr<ScopedSnapshot>> snapshots_of(const std::vector<TrainingWay>& ways) {
  std::vector<std::unique_ptr<ScopedSnapshot>> kept;
  std::vector<const Learner*> seen;
  for (const TrainingWay& way : ways) {
    if (std::find(seen.begin(), seen.end(), way.learner) != seen.end()) continue;
    seen.push_back(way.learner);
    kept.push_back(std::make_unique<ScopedSnapshot>(*way.learner));
    way.learner->model->train();
  }
  return kept;
}

}  // namespace

std::vector<double> training_seconds(const std::vector<TrainingWay>& ways, const Task& task, PassClock clock,
                                     int64_t batch_size, double least_seconds) {
  const auto undisturbed = snapshots_of(ways);
  std::deque<Trial> trials;
  for (const TrainingWay& way : ways) trials.emplace_back(way, task, clock);

  // The first pass makes plans and buffers: of a long one these are little.
  int64_t images = 2;  // of one alone batch norm may not be able to train
  std::vector<double> firsts(ways.size(), 0);
  std::vector<size_t> able = {0};
  trials[0].take(images);
  firsts[0] = trials[0].pass();
  for (size_t i = 1; i < ways.size(); ++i) {
    trials[i].take(images);
    if (trials[i].can_pass(firsts[i])) able.push_back(i);
  }
  if (able.size() == 1 && ways.size() > 1) return firsts;
  if (firsts[0] > kVeryLongPass) return firsts;
  while (images < batch_size && trials[0].pass() < kLongPass) {
    images = std::min(2 * images, batch_size);
    trials[0].take(images);
    trials[0].pass();
  }
  for (const size_t i : able) {
    trials[i].take(images);
    trials[i].pass();
  }

  std::vector<std::vector<double>> passes(ways.size());
  const double begin = now(clock), wanted = least_seconds * static_cast<double>(able.size());
  for (int round = 0; round < 2 || now(clock) - begin < wanted; ++round) {
    for (const size_t i : able) passes[i].push_back(trials[i].pass());
  }
  std::vector<double> seconds(ways.size(), 0);
  for (const size_t i : able) seconds[i] = typical(passes[i], clock);
  return seconds;
}

double pass_seconds(const TrainingWay& way, const Task& task, int64_t images, double least_seconds) {
  constexpr int kLeastPasses = 3;
  const ScopedSnapshot undisturbed(*way.learner);
  way.learner->model->train();
  const ThreadCount threads(way.threads);  // once: threads that are made anew for each pass have no turn at a busy CPU
  Trial trial(way, task, PassClock::wall);
  trial.take(images, side_of(way.settings));
  if (const double first = trial.pass(); first > kVeryLongPass) return first;
  std::vector<double> passes;
  const double begin = now(PassClock::wall);
  while (passes.size() < kLeastPasses || now(PassClock::wall) - begin < least_seconds) passes.push_back(trial.pass());
  return typical(std::move(passes), PassClock::wall);
}

}  // namespace stoker::engine
