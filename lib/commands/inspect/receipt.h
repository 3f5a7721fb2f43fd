// SPDX-License-Identifier: Apache-2.0
// A receipt of a run: where its weights come from, as an in-toto statement and as an SPDX 3 document.
#pragma once

#include <string>
#include <vector>

#include "commands/inspect/recorded_run.h"
#include "core/text/json.h"

namespace stoker::train {

/// An in-toto statement (https://in-toto.io/Statement/v1) with SLSA's provenance v1 about the weights of all
/// checkpoints: options, data, starting weights, program, machine and the checkpoints before it. Follows from the files
/// of the run alone, so that it can be made again and compared. Throws as read_manifest() and read_lineage().
core::Json receipt_of(const RecordedRun& run);

/// An SPDX 3.0.1 document of the AI profile: the newest weights as a package, trained on the data of `receipt`.
/// `created`: UTC, "2026-11-22T10:00:00Z".
core::Json spdx_of(const core::Json& receipt, const std::string& created);

/// The run that a receipt is about: the folder that it lies in, where that is a run, else the one that it names.
/// Throws Error{data} where `path` holds no receipt.
std::string run_of_receipt(const std::string& path, const core::Json& receipt);

/// Whether `path` is a file, and so may be a receipt.
bool is_receipt(const std::string& path);
/// Throws Error{no_input, data}.
core::Json read_receipt(const std::string& path);

/// Fields of `receipt` that are not those of the run, one line each. Where the run lies may differ.
std::vector<std::string> receipt_problems(const core::Json& receipt, const RecordedRun& run);

}  // namespace stoker::train
