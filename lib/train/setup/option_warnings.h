// SPDX-License-Identifier: Apache-2.0
// Warnings about options that are probably mistakes, although the run can be trained.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"
#include "config/facts.h"
#include "data/open_datasets.h"

namespace stoker::train {

/// Sentences for warnings: means of 0 to 255, options of another kind of data, a classifier that was trained on classes
/// of other names.
std::vector<std::string> lint_options(const config::Configuration& given, const config::ResolvedOptions& options,
                                      const config::DataFacts& facts, const data::Datasets& datasets);

/// Why a metric has no value on a validation split, in words; empty: it has one.
std::string metric_problem(config::TaskKind task, config::EvalMetric metric, const data::Source& val);

}  // namespace stoker::train
