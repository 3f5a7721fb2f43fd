// SPDX-License-Identifier: Apache-2.0
// From resolved options to the parts that train: the one place where options meet constructors.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/facts.h"
#include "config/preprocess/preprocessing.h"
#include "data/feed/device_feed.h"
#include "data/source.h"
#include "deploy/inference/inference.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/device/device.h"
#include "engine/device/precision.h"
#include "engine/loop/trainer.h"
#include "engine/run/plan.h"
#include "engine/task/task.h"
#include "model/image_model.h"
#include "optim/schedule.h"

namespace stoker::train {

// Functions that a network needs that only predicts, too.
using deploy::build_model;
using deploy::build_task;
using deploy::decode_limits;
using deploy::model_spec;
using deploy::precision_of;
using deploy::task_spec;

/// Facts about data that is trained on. Measures what `given` leaves open.
config::DataFacts facts_of(const data::Source& train, const config::DataOptions& given);
/// Facts about data that a network with `num_classes` classes or targets is only used on.
config::DataFacts evaluation_facts(const data::Source& source, const config::DataOptions& given, int64_t num_classes);

torch::Device open_and_configure_device(const config::ResolvedOptions& options);
std::string precision_text(const config::ResolvedOptions& options, const engine::Precision& precision);

/// Why updates of such a run cannot be recorded, in a few words, also those `of_device`; empty where they can.
std::string graphs_obstacle(const config::ResolvedOptions& options, const std::string& of_device);
/// Records updates of such a run; null where --graphs is off, or auto and something is in the way. Throws Error{config}
/// where graphs were requested and cannot be.
std::unique_ptr<engine::GraphRunner> graph_runner_for(const config::ResolvedOptions& options, torch::Device device);
/// Text of the banner behind the precision: ", graphs"; empty where there are none.
std::string graphs_text(const config::ResolvedOptions& options, torch::Device device);

/// Numbers that the optimizer keeps per weight that learns, on average.
double optimizer_copies(const config::ResolvedOptimOptions& options, const model::ImageModel& model);

/// Throws Error{config} where `source` has clips, but the network sees single images.
void require_model_for(const config::ResolvedOptions& options, const data::Source& source);
/// The preprocess.json of a run that trains on `train`.
config::Preprocessing preprocessing_for(const config::ResolvedOptions& options, const data::Source& train);
/// The transform of the samples of `source`.
data::TransformPlan transform_plan(const config::ResolvedOptions& options, const data::Source& source, bool training);
/// The settings that loaders of training and evaluation share. Batches are page-locked for a CUDA device alone: page
/// locking makes a context on some GPU, which takes its memory.
data::LoaderSettings loader_settings(const config::ResolvedOptions& options, torch::Device device);
/// Each of several ranks reads its share; see engine::own_batches(). `stored`: see LoaderSettings.
std::shared_ptr<data::Loader> training_loader(const config::ResolvedOptions& options,
                                              std::shared_ptr<const data::Source> source,
                                              const engine::RankShare& share = {},
                                              const std::optional<data::StoredImages>& stored = {});
/// With --feed resident, or where auto takes it, pixels stay on the device. Throws Error{config} where resident was
/// requested and is not possible.
std::unique_ptr<data::DeviceFeed> training_feed(const config::ResolvedOptions& options,
                                                std::shared_ptr<const data::Source> source, torch::Device device,
                                                const engine::RankShare& share = {});
/// Each of several ranks has the batches that are congruent to its rank modulo their number. `is_repeated`: the same
/// samples are evaluated many times, so that they may stay on the device as those of training do.
std::unique_ptr<data::DeviceFeed> evaluation_feed(const config::ResolvedOptions& options,
                                                  std::shared_ptr<const data::Source> source, torch::Device device,
                                                  const engine::RankShare& share = {}, bool is_repeated = false);

/// The training samples in their own order, as training transforms them, in its batches; by rank as above.
std::unique_ptr<data::DeviceFeed> ordered_feed(const config::ResolvedOptions& options,
                                               std::shared_ptr<const data::Source> source, torch::Device device,
                                               const engine::RankShare& share = {});

engine::EpochPlan plan_epoch(const config::ResolvedOptions& options, const data::Loader& loader);
/// `seconds_before`: what earlier processes of the run have trained; --max-time is of this one.
/// Checkpoints that stay, in updates.
engine::Checkpoints::Kept kept_checkpoints(const config::ResolvedOptions& options, const engine::EpochPlan& plan);
engine::RunLimits limits_of(const config::ResolvedOptions& options, double seconds_before);
engine::Checkpoints::Settings checkpoint_settings(const config::ResolvedOptions& options, const std::string& directory);
/// Throws Error{no_input} where --init-from names weights that this machine does not have.
void require_starting_weights(const config::ResolvedModelOptions& options);
/// `resumes`: a checkpoint is going to replace the weights, so that --init-from is not read.
/// `classes`: what is learned, by name; rows of the classifier of a run that has the same names follow them.
engine::Learner build_learner(const config::ResolvedOptions& options, torch::Device device, bool resumes = false,
                              const std::vector<std::string>& classes = {});
/// How training images are varied, in one line.
std::string augment_text(const config::ResolvedOptions& options, const data::Source& train,
                         const engine::MixSettings& mix);
engine::UpdateSettings update_settings(const config::ResolvedOptions& options, const engine::Precision& precision);
/// Without `updates_per_epoch` nothing is frozen for a time: for measurements.
engine::UpdaterSettings updater_settings(const config::ResolvedOptions& options, const engine::Precision& precision,
                                         int64_t updates_per_epoch = 0);
engine::TrainerSettings trainer_settings(const config::ResolvedOptions& options, const engine::EpochPlan& plan,
                                         const engine::Precision& precision, double seconds_before);

}  // namespace stoker::train
