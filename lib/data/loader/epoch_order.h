// SPDX-License-Identifier: Apache-2.0
// In which order an epoch visits the samples: a pure function of its arguments, hence the same for any number
// of workers and after any resume.
#pragma once

#include <cstdint>
#include <vector>

namespace stoker::data {

/// A permutation of all samples. `run_ends`: where the runs of samples end that lie one after another on the
/// storage (StoredSamples::run_ends()); the last is the number of samples.
///   window 0: every order is equally likely.
///   window N: runs are visited in random order, and the samples are shuffled among N neighbours at a time,
///   so that reads stay close together: for storage that punishes seeks.
std::vector<uint32_t> shuffled_order(const std::vector<int64_t>& run_ends, int64_t window, uint64_t seed,
                                     uint64_t epoch);

}  // namespace stoker::data
