// SPDX-License-Identifier: Apache-2.0
// `train bench lr`: short trainings with rising learning rates, on the same images each, and the rate that they
// suggest.
#include <algorithm>
#include <cmath>

#include "commands/bench/bench_rounds.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/stop_signal.h"
#include "engine/probe/training_speed.h"
#include "statistics/paired.h"
#include "train/setup/assemble.h"
#include "train/setup/backend.h"

namespace stoker::train {
namespace {

using core::format;

constexpr double kAlpha = 0.05;
constexpr double kDiverged = 2;  ///< as many times the loss of the lowest rate, which hardly trains

std::vector<double> usual_rates() {
  constexpr int kLowest = -18, kHighest = 3, kInDecade = 3;  // 1e-6 to 10
  std::vector<double> rates;
  for (int k = kLowest; k <= kHighest; ++k) {
    // Two digits, as people write them: 1, 2.2, 4.6.
    rates.push_back(std::stod(format("{:.1e}", std::pow(10.0, static_cast<double>(k) / kInDecade))));
  }
  return rates;
}

/// The mean loss of the later half of the updates, of images that a training of an epoch or less has not seen before;
/// NaN where it diverged.
double loss_at(double rate, const config::ResolvedOptions& options, data::DeviceFeed& feed, int64_t updates) {
  const torch::Device device(options.device.device);
  engine::Learner learner = build_learner(options, device);
  const std::unique_ptr<engine::Task> task = build_task(options, device);
  engine::MeasuredTraining training(updater_settings(options, precision_of(options, device)), *task, learner, feed,
                                    plan_epoch(options, feed.loader()), rate);
  training.warm_up(updates / 2);
  if (!std::isfinite(training.take_loss())) return std::nan("");
  training.warm_up(updates - updates / 2);
  const double loss = training.take_loss();
  return std::isfinite(loss) ? loss : std::nan("");
}

/// Losses of one seed, at each rate. Rates above one that diverged are not tried.
std::vector<double> losses_of_seed(const config::ResolvedOptions& options, data::DeviceFeed& feed,
                                   const std::vector<double>& rates, int64_t updates) {
  std::vector<double> losses(rates.size(), std::nan(""));
  for (size_t i = 0; i < rates.size(); ++i) {
    core::throw_if_stopped();
    losses[i] = loss_at(rates[i], options, feed, updates);
    core::log_debug("seed {} lr {:g}: loss {:.9g}", options.train.seed, rates[i], losses[i]);
    if (!(losses[i] <= kDiverged * losses[0])) {
      losses[i] = std::nan("");
      break;
    }
  }
  return losses;
}

double mean_of(const std::vector<double>& losses) {
  double sum = 0;
  for (const double loss : losses) sum += loss;
  return sum / static_cast<double>(losses.size());  // NaN where one is
}

std::vector<std::string> picture(const std::vector<double>& rates, const std::vector<std::vector<double>>& losses,
                                 const RateChoice& choice) {
  constexpr double kWidth = 40;
  double lowest = INFINITY, highest = -INFINITY;
  for (const std::vector<double>& at : losses) {
    if (std::isnan(mean_of(at))) continue;
    lowest = std::min(lowest, mean_of(at));
    highest = std::max(highest, mean_of(at));
  }
  std::vector<std::string> lines;
  for (size_t i = 0; i < rates.size(); ++i) {
    const double loss = mean_of(losses[i]);
    const double share = highest > lowest ? (loss - lowest) / (highest - lowest) : 0;
    const bool is_suggested = choice.obstacle.empty() && i >= choice.low && i <= choice.high;
    const char* const mark = !is_suggested ? "" : i == choice.best ? "  <- suggested" : "  <- as good within chance";
    lines.push_back(std::isnan(loss)
                        ? format("{:>8.2g}  diverged", rates[i])
                        : format("{:>8.2g}  {:>9.5g}  {}{}", rates[i], loss,
                                 std::string(static_cast<size_t>(1 + std::lround(kWidth * share)), '#'), mark));
  }
  return lines;
}

}  // namespace

RateChoice choose_rate(const std::vector<std::vector<double>>& losses) {
  RateChoice choice;
  const auto difference = [&](size_t a, size_t b) { return statistics::difference_of_runs(losses[a], losses[b], 0); };
  const auto is_whole = [&](size_t i) { return !std::isnan(mean_of(losses[i])); };
  for (size_t i = 0; i < losses.size(); ++i) {
    if (is_whole(i) && !(mean_of(losses[i]) >= mean_of(losses[choice.best]))) choice.best = i;
  }
  if (!is_whole(choice.best)) {
    choice.obstacle = "the loss is not finite at any rate";
    return choice;
  }
  const auto is_worse = [&](size_t i) {  // one-sided
    if (!is_whole(i)) return true;
    const statistics::RunMean to_best = difference(i, choice.best);
    return to_best.mean > 0 && to_best.p_value < 2 * kAlpha;
  };
  choice.low = choice.high = choice.best;
  while (choice.low > 0 && !is_worse(choice.low - 1)) --choice.low;
  while (choice.high + 1 < losses.size() && !is_worse(choice.high + 1)) ++choice.high;
  constexpr size_t kWidest = 6;  // two decades
  if (choice.low == 0 || difference(0, choice.best).mean <= 0) {
    choice.obstacle = "flat: no rate is better than the lowest one by more than chance";
  } else if (choice.high + 1 == losses.size()) {
    choice.obstacle = "the loss falls up to the highest rate: the best one may lie above it";
  } else if (choice.high - choice.low > kWidest) {
    choice.obstacle = "noisy: rates that are a hundred times apart are equally good";
  }
  return choice;
}

BenchResult bench_rates(const config::ResolvedOptions& options, const std::shared_ptr<const data::Source>& source,
                        const RateTest& test) {
  constexpr int64_t kFewest = 20, kMost = 100;
  const std::vector<double> rates = test.rates.empty() ? usual_rates() : test.rates;
  const torch::Device device = open_and_configure_device(options);
  prove_backend(options, benchmark_use(options, *source));
  std::vector<std::vector<double>> losses(rates.size());
  int64_t updates = test.updates > 0 ? std::max<int64_t>(2, test.updates) : 0;
  for (int64_t seed = 0; seed < test.seeds; ++seed) {
    config::ResolvedOptions seeded = options;
    seeded.train.seed = options.train.seed + static_cast<uint64_t>(seed);
    const auto feed = training_feed(seeded, source, device);
    if (updates <= 0) updates = std::clamp(plan_epoch(seeded, feed->loader()).updates(), kFewest, kMost);
    const std::vector<double> of_seed = losses_of_seed(seeded, *feed, rates, updates);
    for (size_t i = 0; i < rates.size(); ++i) losses[i].push_back(of_seed[i]);
    core::log_info("seed {} of {} done", seed + 1, test.seeds);
  }
  const RateChoice choice = choose_rate(losses);
  BenchResult result;
  result.lines = {format("loss after {} updates of {} images with each learning rate, mean of {} seeds; {} on {}",
                         updates, options.loader.batch_size * options.train.accumulation_steps * options.train.replicas,
                         test.seeds, options.model.model, options.device.device)};
  for (const std::string& line : picture(rates, losses, choice)) result.lines.push_back(line);
  core::Json at = core::Json::array();
  for (size_t i = 0; i < rates.size(); ++i) {
    core::Json of_seeds = core::Json::array();
    for (const double loss : losses[i]) of_seeds.push_back(std::isnan(loss) ? core::Json() : core::Json(loss));
    at.push_back({{"lr", rates[i]}, {"losses", of_seeds}});
  }
  result.figures = {{"updates", updates}, {"rates", at}, {"suggestion", nullptr}, {"obstacle", nullptr}};
  if (choice.obstacle.empty()) {
    result.lines.push_back(format("suggestion: --lr {:g} ({:g} to {:g} are as good within chance)", rates[choice.best],
                                  rates[choice.low], rates[choice.high]));
    result.figures["suggestion"] = {
        {"lr", rates[choice.best]}, {"low", rates[choice.low]}, {"high", rates[choice.high]}};
  } else {
    result.lines.push_back(format("no suggestion: {} (--max-updates {} or --seeds {} may show more)", choice.obstacle,
                                  2 * updates, 2 * test.seeds));
    result.figures["obstacle"] = choice.obstacle;
  }
  return result;
}

}  // namespace stoker::train
