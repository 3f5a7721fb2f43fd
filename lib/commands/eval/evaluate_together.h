// SPDX-License-Identifier: Apache-2.0
// Common parts of `train eval` and `train predict`: a network over a feed, by one process or distributed over several,
// and a table of its predictions for each image.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "commands/command.h"
#include "commands/eval/loaded_model.h"
#include "commands/eval/report_csv.h"
#include "config/config.h"
#include "data/source.h"
#include "engine/task/evaluate.h"
#include "train/work_on_devices.h"

namespace stoker::train {

/// Names of classes or targets; --num-classes may have made the classes more than the data has.
std::vector<std::string> output_names(const LoadedModel& loaded);

Outcome print_config(const LoadedModel& loaded);

/// A batch with what the network makes of it; the loader counts the images that were left out so far.
using LoadedVisitor = std::function<void(const data::Batch&, const torch::Tensor& outputs, const data::Loader&)>;

/// Visits all batches in order: of several ranks each computes its share, and all visit all of them. Returns the bad
/// images that were left out. Throws as engine::predict_sharded().
std::vector<data::BadSample> predict_together(const JoinedRanks& ranks, const LoadedModel& loaded,
                                              const LoadedVisitor& visit);

std::unique_ptr<ImageTable> image_table(const LoadedModel& loaded, const TableColumns& wanted);
/// Adds every image of a batch with all that is known of it.
void add_results(const LoadedModel& loaded, const data::Batch& batch, const torch::Tensor& outputs, ImageTable& table);

/// Does `work` alone, as one of several ranks, or with --devices by ranks that it starts. Options are shown by this
/// process alone.
Outcome evaluate_on_devices(const Context& context, const RankWork& work);

// Samples without labels that a command line names, for commands that run a trained network on them.

/// `inputs`: files, folders, patterns, lists, a shard or an HDF5 file, whose labels are not used. `trained`: names of
/// the network's classes or targets. Throws Error{usage}, {no_input}, {data}.
std::shared_ptr<const data::Source> open_inputs(const std::vector<std::string>& inputs, config::DataOptions options,
                                                const std::vector<std::string>& trained);

}  // namespace stoker::train
