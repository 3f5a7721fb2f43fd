// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/training_speed.h"

#include <algorithm>
#include <deque>
#include <exception>
#include <memory>

#include "core/log.h"
#include "core/system/stop_signal.h"
#include "engine/device/out_of_memory.h"
#include "engine/probe/compared_passes.h"
#include "engine/probe/thread_count.h"

namespace stoker::engine {
namespace {

/// One way, tried again and again.
class Trial {
 public:
  Trial(const TrainingWay& way, const Task& task, PassClock clock)
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
  const TrainingWay& way_;
  const PassClock clock_;
  UpdateStep step_;
  data::Batch batch_;
};

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
                                     int64_t batch_size, double least_seconds, double gain_that_counts) {
  const auto undisturbed = snapshots_of(ways);
  const TrainingWay& first = ways.front();
  const int64_t side = side_to_try(*first.learner->model, first.settings, first.learner->device);
  std::deque<Trial> trials;
  for (const TrainingWay& way : ways) trials.emplace_back(way, task, clock);
  ComparedPasses passes;
  passes.ways = ways.size();
  passes.take = [&](size_t way, int64_t images) { trials[way].take(images, side); };
  passes.begin_turn = [&](size_t way) { at::set_num_threads(static_cast<int>(ways[way].threads)); };
  passes.pass = [&](size_t way) { return trials[way].pass(); };
  passes.can_pass = [&](size_t way) { return trials[way].can_pass(); };
  passes.turns_disturb = std::any_of(ways.begin(), ways.end(),
                                     [&](const TrainingWay& way) { return way.threads != ways.front().threads; });
  passes.takes_median = clock == PassClock::wall;
  passes.gain_that_counts = gain_that_counts;
  const ThreadCount as_before(at::get_num_threads());
  const double begin = seconds_by(PassClock::wall);
  std::vector<double> seconds = compared_seconds(passes, batch_size, least_seconds);
  core::log_debug("training: tried in {} ways for {:.2f} s", ways.size(), seconds_by(PassClock::wall) - begin);
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
  const double begin = seconds_by(PassClock::wall);
  while (passes.size() < kLeastPasses || seconds_by(PassClock::wall) - begin < least_seconds)
    passes.push_back(trial.pass());
  std::sort(passes.begin(), passes.end());
  return passes[passes.size() / 2];
}

}  // namespace stoker::engine
