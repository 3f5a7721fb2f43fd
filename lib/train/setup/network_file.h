// SPDX-License-Identifier: Apache-2.0
// A run whose network comes from a file (--model FILE.ts): the copy of the file that the run keeps, and how files are
// identified. Without effect on networks of ours.
#pragma once

#include <string>

#include "config/config.h"
#include "config/resolution.h"
#include "core/text/json.h"
#include "data/open_datasets.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/run_identity.h"

namespace stoker::train {

/// Throws Error{config} for what needs several copies of one network, which such a file cannot give with the same bits.
void require_one_copy_of_network(const config::ResolvedOptions& options);

/// The value of `model` in a run's identity becomes the SHA-256 of the file: the bytes are compared, not the path.
void identify_network_file(const config::ResolvedOptions& options, engine::RunIdentity& identity);
/// Whether `model`, as a checkpoint has it, is such a value.
bool is_network_identity(const std::string& model);

/// Copies the file into the run directory, where it is not there yet. Throws Error{io}, {cannot_create}.
void keep_network_file(const config::ResolvedOptions& options, const std::string& run_directory);

/// `model` becomes the copy in the run directory, if there is one and the options name a file.
void use_kept_network_file(const std::string& run_directory, config::Configuration& configuration);
/// use_kept_network_file() with the run directory of `checkpoint`. Throws Error{config} where the file is not the one
/// that `manifest`, that of the checkpoint, names.
void use_network_file_of_run(const std::string& checkpoint, const core::Json& manifest,
                             config::Configuration& configuration);

// The identity of a run, as its checkpoints store it.

/// Its part that is known before anything is measured: options and data.
engine::RunIdentity known_identity(const config::ResolvedOptions& options, const data::Datasets& datasets);
/// `ranks`: that train together; counts where the bits depend on it.
engine::RunIdentity identity_of(const config::ResolvedOptions& options, const data::Datasets& datasets,
                                const engine::StartingWeights& started_from, int64_t ranks = 1);

/// This program, LibTorch and the processor, as names and texts: bits are promised where all of them are the same.
core::Json program_facts(const config::ResolvedOptions& options);

}  // namespace stoker::train
