// SPDX-License-Identifier: Apache-2.0
// What the machine and the data say together about the loader: how many workers, and what is kept in memory.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"
#include "core/machine.h"
#include "data/source.h"

namespace stoker::app {

/// Fills an automatic num-workers by measuring on `train`, up to the CPUs of this process and as far as the
/// pixels under way fit in a quarter of its free memory. Where nothing can be measured, resolve_machine()'s
/// choice stays. Takes about 1.2 s.
void measure_workers(config::Configuration& configuration, const core::MachineFacts& machine,
                     const config::DataFacts& facts, const data::Source& train);

/// Fills automatic cache and cache-budget, and puts both splits behind caches, training first: what it leaves
/// of the budget is for validation. Returns a line for each split.
std::vector<std::string> add_caches(config::Configuration& configuration, const core::MachineFacts& machine,
                                    data::Datasets& datasets);

}  // namespace stoker::app
