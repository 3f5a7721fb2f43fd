// SPDX-License-Identifier: Apache-2.0
// Whether the files of the two splits of a run are what they should be: for `--dry-run` and `train check`.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "config/options.h"
#include "data/open_datasets.h"
#include "data/probe/file_check.h"

namespace stoker::train {

/// For both splits, with "training samples" and "validation samples"; all of them, or some.
std::vector<std::pair<std::string, data::FileCheck>> check_data_files(const data::Datasets& datasets,
                                                                      const data::DecodeLimits& limits, int64_t threads,
                                                                      bool all);

/// check_data_files() for a run that is about to start: logs what was found. Throws Error{data} where it would end the
/// run.
void refuse_bad_files(const config::ResolvedOptions& options, const data::Datasets& datasets, bool all);

/// Before the first update: throws Error{data} for files of either split that are missing or damaged, of 1,000 of each
/// that are decoded and all whose absence shows without, and for a validation split on which the metric that chooses
/// the best checkpoint has no value.
void refuse_unfit_data(const config::ResolvedOptions& options, const data::Datasets& datasets);

}  // namespace stoker::train
