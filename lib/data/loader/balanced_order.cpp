// SPDX-License-Identifier: Apache-2.0
#include "data/loader/balanced_order.h"

#include <numeric>

#include "core/rng.h"

namespace stoker::data {
namespace {

/// Fisher-Yates.
void shuffle_round(std::vector<uint32_t>& values, core::Rng& rng) {
  for (size_t left = values.size(); left > 1; --left) std::swap(values[left - 1], values[rng.below(left)]);
}

}  // namespace

std::vector<std::vector<uint32_t>> samples_by_class(const Source& source) {
  std::vector<std::vector<uint32_t>> classes(static_cast<size_t>(source.num_classes()));
  for (int64_t i = 0; i < source.size(); ++i) {
    classes[static_cast<size_t>(source.label(i))].push_back(static_cast<uint32_t>(i));
  }
  std::vector<std::vector<uint32_t>> present;
  for (std::vector<uint32_t>& samples : classes) {
    if (!samples.empty()) present.push_back(std::move(samples));
  }
  return present;
}

BalancedOrder class_balanced_order(const std::vector<std::vector<uint32_t>>& classes, uint64_t seed, uint64_t epoch) {
  size_t size = 0;
  for (const std::vector<uint32_t>& samples : classes) size += samples.size();
  // Which classes get one more than the others moves on from epoch to epoch.
  const size_t share = size / classes.size(), extra = size % classes.size(), first_extra = epoch % classes.size();

  BalancedOrder grouped;
  for (size_t k = 0; k < classes.size(); ++k) {
    const bool gets_extra = (k + classes.size() - first_extra) % classes.size() < extra;
    core::Rng rng(seed, core::RngPurpose::balance, epoch, k);
    std::vector<uint32_t> round = classes[k];
    for (size_t i = 0; i < share + (gets_extra ? 1 : 0); ++i) {
      if (i % round.size() == 0) shuffle_round(round, rng);
      grouped.samples.push_back(round[i % round.size()]);
      grouped.rounds.push_back(static_cast<uint32_t>(i / round.size()));
    }
  }
  BalancedOrder mixed;
  for (const uint32_t at : core::shuffled_indices(static_cast<uint32_t>(size), seed, epoch)) {
    mixed.samples.push_back(grouped.samples[at]);
    mixed.rounds.push_back(grouped.rounds[at]);
  }
  return mixed;
}

}  // namespace stoker::data
