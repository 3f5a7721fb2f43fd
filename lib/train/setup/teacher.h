// SPDX-License-Identifier: Apache-2.0
// A run that learns from another network (--teacher RUN|FILE.ts): how it is found, identified and opened. Without
// effect where there is none.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/resolution.h"
#include "data/open_datasets.h"
#include "deploy/inference/inference.h"
#include "engine/checkpoint/run_identity.h"
#include "engine/step/learner.h"
#include "engine/step/teacher.h"
#include "train/launch/joined_ranks.h"

namespace stoker::train {

/// Throws no_input where neither a file nor a checkpoint is there.
void require_teacher(const config::ResolvedOptions& options);
/// Throws as open_teacher() where a run does not fit these data.
void require_fitting_teacher(const config::ResolvedOptions& options, const std::vector<std::string>& classes);
/// The network, which is proven with the one that learns.
void add_teacher(const config::ResolvedOptions& options, deploy::NetworkUse& use);
/// The value of `teacher` in a run's identity becomes the digest of the checkpoint or of the file: the bytes are
/// compared, not the path.
void identify_teacher(const config::ResolvedOptions& options, engine::RunIdentity& identity);
/// Null where there is none. `classes`: what is learned, by name; empty: outputs are only counted. Draws from the
/// global torch generator. Throws Error{config} where classes, channels or the size of images do not fit, and as
/// engine::load_model_of() and model::make_model().
std::shared_ptr<engine::Teacher> open_teacher(const config::ResolvedOptions& options, torch::Device device,
                                              const std::vector<std::string>& classes);
/// "runs/large (resnet50), 0.9 of the loss at temperature 4"; empty where there is none.
std::string teacher_text(const config::ResolvedOptions& options);

/// Bytes of the outputs for all training samples, where images never change and memory holds them; else 0: outputs
/// are computed for each batch.
int64_t kept_output_bytes(const config::ResolvedOptions& options, const data::Source& train);
/// Gives the teacher of `learner` those outputs: from RUN/teacher.safetensors where it holds them, else computed, and
/// then written if that `may_write`. All ranks make this call. Throws as engine::predict_sharded().
void keep_teacher_outputs(const config::ResolvedOptions& options, const data::Datasets& datasets,
                          const JoinedRanks& ranks, const std::string& run_directory, bool may_write,
                          engine::Learner& learner);

}  // namespace stoker::train
