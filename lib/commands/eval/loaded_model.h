// SPDX-License-Identifier: Apache-2.0
// A checkpoint made ready for `train eval` and `train predict`: its network, its options under this command line's
// flags, and the data that it is used on.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands/command.h"
#include "config/config.h"
#include "data/source.h"
#include "deploy/inference/inference.h"
#include "engine/task/task.h"
#include "model/image_model.h"
#include "plan/memory_plan.h"
#include "train/launch/joined_ranks.h"
#include "train/setup/settings.h"

namespace stoker::train {

/// A checkpoint with its own configuration, over which this command line's flags have been laid.
struct LoadedModel {
  std::unique_ptr<config::Configuration> given;
  std::optional<Settings> settings;  ///< settings of `given`
  engine::SavedModel saved;
  std::optional<config::Preprocessing> record;  ///< record of how its inputs are made; older checkpoints have none
  std::shared_ptr<const data::Source> source;   ///< what it is used on
  std::unique_ptr<engine::Task> task;
  std::shared_ptr<model::ImageModel> model;
  torch::Device device = torch::kCPU;
  engine::Precision precision;

  const config::ResolvedOptions& options() const { return settings->options(); }
};

/// Opens what the network is used on. `trained` are the names of the
/// checkpoint's classes or targets.
using OpenSource = std::function<std::shared_ptr<const data::Source>(const config::Configuration& given,
                                                                     const std::vector<std::string>& trained)>;

struct NamedCheckpoint {
  std::string path;            ///< run directory or checkpoint
  std::string which = "best";  ///< checkpoint of a run directory: best, last
};

/// Reads the checkpoint, which rank 0 finds, and its configuration; the settings have this rank's share of the machine.
/// `change`: what the command gives in place of
/// what was given.
LoadedModel load_configuration(const config::CommandLine& line, const JoinedRanks& ranks, const NamedCheckpoint& named,
                               const std::function<void(config::Options& given)>& change = {});

/// Opens the data, of which the settings learn, checks the rules about data, builds the network and loads its weights.
/// Throws Error{config} for options that do not fit the data or the network, Error{data} for weights that are not of
/// the network, Error{out_of_memory} for batches that do not fit into the memory that is free.
/// Throws Error{config} on all ranks where other data, options or programs would give other results.
void load_network(const OpenSource& open, const JoinedRanks& ranks, LoadedModel& loaded);

// The predicted memory of `train eval` and `train predict`.

struct EvaluationParts {
  const config::ResolvedOptions& options;
  const data::Source& source;
  model::ImageModel& model;
  const engine::Task& task;
  torch::Device device;
  int64_t data_bytes = 0;  ///< that opening the data took
  int64_t most_side = 0;   ///< longest side of images that are tried, in pixels, larger ones by their area; 0: any
};

/// Weights, the batches that the loader holds, and the network's input; activations, too, by trying a few images, where
/// they may matter in `budget`: where a network that holds some hundred times its input would not fit. Images that do
/// not fit when they are tried count as more than what is free.
plan::PlanInputs measure_evaluation(const EvaluationParts& parts, const plan::MemoryBudget& budget);

}  // namespace stoker::train
