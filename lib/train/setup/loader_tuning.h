// SPDX-License-Identifier: Apache-2.0
// Settings of the loader that depend on machine and data: how many workers, and what is kept in memory.
#pragma once

#include <string>
#include <vector>

#include "core/system/machine.h"
#include "data/open_datasets.h"
#include "data/source.h"
#include "train/setup/settings.h"

namespace stoker::train {

/// Measures how many workers are worth it on `train`, where num-workers is automatic: up to the CPUs of this process,
/// and as far as the pixels under way fit in a quarter of its free memory. Where nothing can be measured, the number
/// stays that of the machine. The facts about data are known. Takes about 1.2 s.
void measure_workers(Settings& settings, const data::Source& train);

/// The memory of one loader worker while it makes samples, in bytes.
int64_t worker_scratch_bytes(const config::DataFacts& facts, const data::Source& source);

/// Memory of the batches that both loaders hold, in bytes.
int64_t batch_buffer_bytes(const config::ResolvedOptions& options, const data::Source& train);

struct Caches {
  std::vector<std::string> lines;  ///< one for each split
  int64_t planned_bytes = 0;       ///< size of both caches when full
};
/// Measures automatic cache and cache-budget, and puts both splits behind caches, training first: what it leaves
/// of the budget is for validation. The budget is half of what is free on `machine` less `reserved_bytes`, which the
/// run takes besides.
Caches add_caches(Settings& settings, const core::MachineFacts& machine, data::Datasets& datasets,
                  int64_t reserved_bytes);

}  // namespace stoker::train
