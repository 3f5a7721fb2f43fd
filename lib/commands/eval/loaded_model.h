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
#include "engine/checkpoint/checkpoint.h"
#include "engine/device/precision.h"
#include "engine/task/task.h"
#include "train/launch/joined_ranks.h"
#include "train/setup/settings.h"

namespace stoker::train {

/// A checkpoint with its own configuration, over which this command line's flags have been laid.
struct LoadedModel {
  std::unique_ptr<config::Configuration> given;
  std::optional<Settings> settings;  ///< of `given`
  engine::SavedModel saved;
  std::shared_ptr<const data::Source> source;  ///< what it is used on
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
  std::string which = "best";  ///< of a run directory: best, last
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

}  // namespace stoker::train
