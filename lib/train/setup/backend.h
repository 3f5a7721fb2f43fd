// SPDX-License-Identifier: Apache-2.0
// The planned use of a network by a command, for which the libraries are proven first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/open_datasets.h"
#include "deploy/inference/inference.h"
#include "train/setup/settings.h"

namespace stoker::train {

using deploy::NetworkUse;
using deploy::prove_backend;

/// For a run: its batches, the last short ones, and what micro-batches may come of them.
NetworkUse training_use(const Settings& settings, const data::Datasets& datasets);
/// Whether a network trains in both precisions before one is chosen, or in reduced precision alone: both are proven.
bool tries_precisions(const Settings& settings);
/// For an evaluation or a prediction.
NetworkUse evaluation_use(const config::ResolvedOptions& options, const data::Source& source);
/// For a benchmark: one size of batch in training. `input`: shape of one image or clip.
NetworkUse benchmark_use(const config::ResolvedOptions& options, std::vector<int64_t> input);
/// The same on samples of `source`.
NetworkUse benchmark_use(const config::ResolvedOptions& options, const data::Source& source);

}  // namespace stoker::train
