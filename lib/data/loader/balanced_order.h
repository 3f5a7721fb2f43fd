// SPDX-License-Identifier: Apache-2.0
// The order of an epoch that shows every class equally often: a pure function of (seed, epoch).
#pragma once

#include <cstdint>
#include <vector>

#include "data/source.h"

namespace stoker::data {

/// The samples of each class, in the order of the source; classes without samples are left out.
std::vector<std::vector<uint32_t>> samples_by_class(const Source& source);

/// An epoch of as many samples as the source has, in which every class that has any is seen equally often (to
/// within one). A class's samples come in rounds: each round shows all of them once, in an order of its own,
/// before any comes again; a class with more samples than its share shows a part of them that changes from
/// epoch to epoch.
struct BalancedOrder {
  std::vector<uint32_t> samples;
  /// Which round of its class each stands in, from 0: with the sample it is unique within the epoch.
  std::vector<uint32_t> rounds;
};
BalancedOrder class_balanced_order(const std::vector<std::vector<uint32_t>>& classes, uint64_t seed, uint64_t epoch);

}  // namespace stoker::data
