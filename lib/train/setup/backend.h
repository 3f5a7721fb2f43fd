// SPDX-License-Identifier: Apache-2.0
// Before a command computes: that the libraries compute its network rightly at the batches that it will use.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/open_datasets.h"
#include "train/setup/compute_choices.h"
#include "train/setup/settings.h"

namespace stoker::train {

/// What is going to be computed with a network.
struct NetworkUse {
  std::vector<int64_t> input;                                           ///< shape of one image or clip: {3, 224, 224}
  std::vector<int64_t> training_batches = {}, evaluation_batches = {};  ///< in images
  bool tries_precisions = false;                                        ///< bfloat16 and float32 are compared
};

/// Of a run: its batches, the last short ones, and what micro-batches may come of them.
NetworkUse training_use(const Settings& settings, const data::Datasets& datasets);
/// Of an evaluation or a prediction.
NetworkUse evaluation_use(const config::ResolvedOptions& options, const data::Source& source);
/// Of a benchmark: one size of batch in training. `input`: shape of one image or clip.
NetworkUse benchmark_use(const config::ResolvedOptions& options, std::vector<int64_t> input);
/// The same on samples of `source`.
NetworkUse benchmark_use(const config::ResolvedOptions& options, const data::Source& source);

/// Who proves: see proof::ProverSettings.
struct ProverPlace {
  std::string program;        ///< path of stoker-prove; empty: not installed
  bool may_limit_isa = true;  ///< no other code in this process has used oneDNN
};
/// That of this program.
ProverPlace usual_prover();

/// Proves it according to --prove-backend, takes the remedy where one is needed, and warns of it once. With `from_root`
/// the root does for all ranks, which make the call at the same place. Throws Error{backend} where nothing is right.
void prove_backend(const config::ResolvedOptions& options, const NetworkUse& use, const FromRoot& from_root = {},
                   const ProverPlace& prover = usual_prover());

}  // namespace stoker::train
