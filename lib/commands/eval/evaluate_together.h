// SPDX-License-Identifier: Apache-2.0
// What `train eval` and `train predict` have in common: a network over a feed, by one process or dealt to several, and
// a table of its predictions for each image.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "commands/command.h"
#include "commands/eval/loaded_model.h"
#include "commands/eval/report_csv.h"
#include "engine/task/evaluate.h"
#include "train/work_on_devices.h"

namespace stoker::train {

/// Names of classes or targets; --num-classes may have made the classes more than the data has.
std::vector<std::string> output_names(const LoadedModel& loaded);

Outcome print_config(const LoadedModel& loaded);

/// A batch with what the network makes of it; the loader counts the images that were left out so far.
using LoadedVisitor = std::function<void(const data::Batch&, const torch::Tensor& outputs, const data::Loader&)>;

/// Visits all batches in order: of several ranks each computes its share, and all visit all of them. Returns the bad
/// images that were left out. Throws as engine::predict_dealt().
std::vector<data::BadSample> predict_together(const JoinedRanks& ranks, const LoadedModel& loaded,
                                              const LoadedVisitor& visit);

std::unique_ptr<ImageTable> image_table(const LoadedModel& loaded, const TableColumns& wanted);
/// Adds every image of a batch with all that is known of it.
void add_results(const LoadedModel& loaded, const data::Batch& batch, const torch::Tensor& outputs, ImageTable& table);

/// Does `work` alone, as one of several ranks, or with --devices by ranks that it starts. Options are shown by this
/// process alone.
Outcome evaluate_on_devices(const Context& context, const RankWork& work);

}  // namespace stoker::train
