// SPDX-License-Identifier: Apache-2.0
// Common parts of the benchmarks of `train bench`: rounds, their spread, and how figures are handed over.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "commands/command.h"
#include "config/options.h"
#include "core/text/json.h"
#include "data/source.h"
#include "train/setup/settings.h"

namespace stoker::train {

using BenchClock = std::chrono::steady_clock;

/// How long a benchmark may take.
struct BenchEffort {
  int rounds = 5;
  double seconds_per_round = 2;  ///< at least
  int warm_up_updates = 3;
};

/// A figure over several rounds.
struct Spread {
  double median = 0, lowest = 0, highest = 0;
};
Spread spread_of(std::vector<double> values);
/// {"median": ..., "lowest": ..., "highest": ...}
core::Json json_of(const Spread& spread);
/// A number for a square, else {"height": ..., "width": ...}.
core::Json json_of(const config::ImageSize& size);
/// "1234.5 images/s (1200.1 to 1250.0)"
std::string text_of(const Spread& spread, const std::string& unit);

/// The result of one benchmark.
struct BenchResult {
  Spread images_per_second;
  core::Json figures;              ///< an object
  std::vector<std::string> lines;  ///< the same for people
};

/// Measures the automatic choices that depend on the network (precision, layout, threads), as training does.
void decide_arithmetic(Settings& settings);

/// Options are resolved for all three. `source` is what is trained on. They throw core::StopRequested.
BenchResult bench_loader(const config::ResolvedOptions& options, const std::shared_ptr<const data::Source>& source,
                         const BenchEffort& effort = {});
BenchResult bench_step(const config::ResolvedOptions& options, const BenchEffort& effort = {});
/// The data of `bench ablate`.
struct AblatedData {
  std::shared_ptr<const data::Source> as_configured;
  std::shared_ptr<const data::Source> uncached;  ///< the same where there is no cache
};
/// Training as it is, and without each of the things that make it fast, in turn: `rounds` of each, paired.
BenchResult bench_ablate(const config::ResolvedOptions& options, const AblatedData& data,
                         const BenchEffort& effort = {});
struct RateTest {
  int64_t seeds = 3, updates = 0;  ///< updates: 0: chosen from the epoch
  std::vector<double> rates = {};  ///< ascending; empty: three a decade from 1e-6 to 10
};
/// Training from the start with each of several learning rates and the run's schedule, for each seed on the same
/// images: which rates have the lowest loss after some updates. Nothing is measured that depends on the machine: the
/// same answer each time.
BenchResult bench_rates(const config::ResolvedOptions& options, const std::shared_ptr<const data::Source>& source,
                        const RateTest& test);
/// Losses of trainings: [rate][seed], NaN: it diverged.
struct RateChoice {
  size_t best = 0, low = 0, high = 0;  ///< rates; those from low to high are as good within chance
  std::string obstacle;                ///< why none is suggested; empty: one is
  bool needs_updates = false;          ///< more of them may remove it, more seeds will not
};
/// `same_answer`: the loss of the best answer that is the same for every image.
RateChoice choose_rate(const std::vector<std::vector<double>>& losses, double same_answer);
/// Training as it is, both at once: the figure that the two others bound.
BenchResult bench_training(const config::ResolvedOptions& options, const std::shared_ptr<const data::Source>& source,
                           const BenchEffort& effort = {});

}  // namespace stoker::train
