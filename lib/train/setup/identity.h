// SPDX-License-Identifier: Apache-2.0
// What makes a run the run that it is, as its checkpoints remember it.
#pragma once

#include "config/resolution.h"
#include "data/open_datasets.h"
#include "engine/checkpoint/checkpoint.h"

namespace stoker::train {

/// `ranks`: that train together; counts where the bits depend on it.
engine::RunIdentity identity_of(const config::ResolvedOptions& options, const data::Datasets& datasets,
                                int64_t ranks = 1);

/// This program, LibTorch and the processor, as names and texts: bits are promised where all of them are the same.
core::Json program_facts(const config::ResolvedOptions& options);

}  // namespace stoker::train
