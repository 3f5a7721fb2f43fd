// SPDX-License-Identifier: Apache-2.0
// `train bench lr`: short trainings with rising learning rates, on the same images each, and the rate that they
// suggest.
#include <torch/optim/lbfgs.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "commands/bench/bench_rounds.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/stop_signal.h"
#include "engine/probe/training_speed.h"
#include "optim/schedule.h"
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

/// The loss of the best answer that is the same for every image: what is learned without looking at any.
double loss_of_same_answer(const config::ResolvedOptions& options, const data::Source& source) {
  constexpr int64_t kMostImages = 10'000, kMostNumbers = 20'000'000, kIterations = 50;
  const std::unique_ptr<engine::Task> task = build_task(options, torch::kCPU);
  const int64_t outputs = task->num_outputs(), targets = source.num_targets();
  const int64_t images = std::min({source.size(), kMostImages, std::max<int64_t>(1, kMostNumbers / outputs)});
  data::Batch batch;
  batch.labels = torch::empty({images}, at::kLong);
  batch.targets = torch::empty({images, targets}, at::kFloat);
  for (int64_t i = 0; i < images; ++i) {
    const int64_t sample = i * source.size() / images;
    batch.labels.data_ptr<int64_t>()[i] = source.label(sample);
    if (targets > 0) source.targets(sample, batch.targets.data_ptr<float>() + i * targets);
  }
  const torch::Tensor answer = torch::zeros({1, outputs}, at::kFloat).set_requires_grad(true);
  torch::optim::LBFGS optimizer(std::vector<torch::Tensor>{answer},
                                torch::optim::LBFGSOptions(1).max_iter(kIterations).line_search_fn("strong_wolfe"));
  double lowest = std::numeric_limits<double>::infinity();
  optimizer.step([&] {
    optimizer.zero_grad();
    const torch::Tensor loss =
        task->training_loss_sum(answer.expand({images, outputs}), batch) / static_cast<double>(images);
    loss.backward();
    const double value = loss.item<double>();
    if (value < lowest) lowest = value;
    return loss;
  });
  return lowest;
}

/// The loss at the end of a training in miniature: the run's schedule, with `rate` as its highest, over `updates`
/// updates, of which the last quarter count. With a constant rate, or soon after the start, low rates would look better
/// than they are in a run, where the noise of higher ones fades with the schedule (Wu et al., "Understanding
/// Short-Horizon Bias in Stochastic Meta-Optimization", 2018). Images are those of training, which an epoch or less has
/// not seen before. NaN where it diverged.
double loss_at(double rate, const config::ResolvedOptions& options, data::DeviceFeed& feed, int64_t updates) {
  const torch::Device device(options.device.device);
  engine::Learner learner = build_learner(options, device);
  const std::unique_ptr<engine::Task> task = build_task(options, device);
  const engine::EpochPlan plan = plan_epoch(options, feed.loader());
  const int64_t of_run = options.train.epochs * plan.updates();
  config::ResolvedScheduleOptions rule = options.schedule;
  rule.min_lr = std::min(rule.min_lr, rate);
  rule.warmup_lr = std::min(rule.warmup_lr, rate);
  const optim::Schedule schedule(rule, rate, of_run, plan.updates());
  engine::MeasuredTraining training(updater_settings(options, precision_of(options, device)), *task, learner, feed,
                                    plan, rate);
  const int64_t counted = std::max<int64_t>(1, updates / 4);
  for (int64_t i = 0; i < updates; ++i) {
    if (i == updates - counted && !std::isfinite(training.take_loss())) return std::nan("");
    // The middle of the updates that this one stands for.
    training.set_rates(schedule.rates_at((2 * i + 1) * of_run / (2 * updates)));
    training.warm_up(1);
  }
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

RateChoice choose_rate(const std::vector<std::vector<double>>& losses, double same_answer) {
  constexpr double kLearned = 0.95;  // times that loss
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
  const double lowest = mean_of(losses[choice.best]);
  const double of_worst_seed = *std::max_element(losses[choice.best].begin(), losses[choice.best].end());
  if (lowest > kLearned * same_answer || of_worst_seed > same_answer) {
    choice.obstacle = format(
        "nothing was learned at any rate: the lowest loss, {:.4g}, is not clearly below that of always giving "
        "the same answer, {:.4g}",
        lowest, same_answer);
    choice.needs_updates = true;
    return choice;
  }
  const auto is_worse = [&](size_t i) {  // one-sided
    if (!is_whole(i) || mean_of(losses[i]) >= same_answer) return true;
    const statistics::RunMean to_best = difference(i, choice.best);
    return to_best.mean > 0 && to_best.p_value < 2 * kAlpha;
  };
  choice.low = choice.high = choice.best;
  while (choice.low > 0 && !is_worse(choice.low - 1)) --choice.low;
  while (choice.high + 1 < losses.size() && !is_worse(choice.high + 1)) ++choice.high;
  constexpr size_t kWidest = 6;  // two decades
  if (choice.best == 0) {
    choice.obstacle = "flat: the lowest rate is the best: the network had learned before, or the best one lies below";
  } else if (choice.low == 0 || difference(0, choice.best).mean <= 0) {
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
  const double same_answer = loss_of_same_answer(options, *source);
  const RateChoice choice = choose_rate(losses, same_answer);
  BenchResult result;
  result.lines = {
      format("loss after {} updates of {} images with each learning rate, mean of {} seeds; {} on {}; always the same "
             "answer has {:.4g}",
             updates, options.loader.batch_size * options.train.accumulation_steps * options.train.replicas, test.seeds,
             options.model.model, options.device.device, same_answer)};
  for (const std::string& line : picture(rates, losses, choice)) result.lines.push_back(line);
  core::Json at = core::Json::array();
  for (size_t i = 0; i < rates.size(); ++i) {
    core::Json of_seeds = core::Json::array();
    for (const double loss : losses[i]) of_seeds.push_back(std::isnan(loss) ? core::Json() : core::Json(loss));
    at.push_back({{"lr", rates[i]}, {"losses", of_seeds}});
  }
  result.figures = {{"updates", updates},
                    {"rates", at},
                    {"same_answer_loss", same_answer},
                    {"suggestion", nullptr},
                    {"obstacle", nullptr}};
  if (choice.obstacle.empty()) {
    result.lines.push_back(format("suggestion: --lr {:g} ({})", rates[choice.best],
                                  choice.low == choice.high ? "the others are worse by more than chance"
                                                            : format("{:g} to {:g} are as good within chance",
                                                                     rates[choice.low], rates[choice.high])));
    result.figures["suggestion"] = {
        {"lr", rates[choice.best]}, {"low", rates[choice.low]}, {"high", rates[choice.high]}};
  } else {
    result.lines.push_back(format("no suggestion: {} (--max-updates {}{} may show more)", choice.obstacle, 2 * updates,
                                  choice.needs_updates ? "" : format(" or --seeds {}", 2 * test.seeds)));
    result.figures["obstacle"] = choice.obstacle;
  }
  return result;
}

}  // namespace stoker::train
