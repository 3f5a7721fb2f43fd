// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/compared_passes.h"

#include <algorithm>

namespace stoker::engine {
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

/// Of passes that take long, `first` for the first way: each other way once, until one is far slower.
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

}  // namespace stoker::engine
