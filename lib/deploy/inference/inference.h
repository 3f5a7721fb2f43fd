// SPDX-License-Identifier: Apache-2.0
// From a checkpoint to a network that predicts: what libstoker, `train eval` and `train predict` share, and what
// training builds on. Nothing here trains.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "config/facts.h"
#include "config/preprocess/preprocessing.h"
#include "config/resolution.h"
#include "data/transform/transform.h"
#include "engine/device/precision.h"
#include "engine/saved/saved_model.h"
#include "engine/task/task.h"
#include "model/image_model.h"

namespace stoker::deploy {

// Options, as they hold.

/// The threads that OMP_NUM_THREADS sets, at most one for each CPU; nothing where it is no number.
std::optional<config::Measured<int64_t>> requested_threads(const std::string& omp_num_threads, int cpus);
/// Known before anything is opened: of the machine, and of who gave which option. For one process.
config::Facts first_facts(const config::Configuration& given, core::MachineFacts machine);
/// The usual rates of the network that `options` name.
config::ModelFacts usual_rates_of(const config::ResolvedModelOptions& options);
/// With all that data and network decide, for work that is not planned as a run: an automatic batch is a usual one, and
/// an automatic drop-last is that of a network that cannot train on one image. The cache is not chosen here. Adds what
/// it found to `facts`. Throws as config::resolve().
config::Resolution settle(const config::Options& given, config::Facts& facts, config::DataFacts data);

// A checkpoint.

struct ReadCheckpoint {
  engine::SavedModel saved;                     ///< class names are those of the record
  std::optional<config::Preprocessing> record;  ///< preprocess.json; nothing in checkpoints that have none
};
/// The options and the preprocessing of `saved`; `given` gets the options that it was trained with. Throws
/// Error{data}.
ReadCheckpoint read_checkpoint(engine::SavedModel saved, config::Configuration& given);

// The parts that compute, from resolved options.

inline constexpr char kSmallerModel[] = "choose a smaller --model, or a smaller --width where the model has one";

engine::Precision precision_of(const config::ResolvedOptions& options, torch::Device device);
/// The task of the network.
engine::TaskSpec task_spec(const config::ResolvedOptions& options);
std::unique_ptr<engine::Task> build_task(const config::ResolvedOptions& options, torch::Device device);
/// The specification of the network.
model::ModelSpec model_spec(const config::ResolvedOptions& options);
std::shared_ptr<model::ImageModel> build_model(const config::ResolvedOptions& options, torch::Device device);
/// The limits of images, for everything that decodes one.
data::DecodeLimits decode_limits(const config::DataOptions& data);
data::DecodeLimits decode_limits(const config::ResolvedDataOptions& data);

// Before it computes: that the libraries compute it correctly.

/// The planned use of a network.
struct NetworkUse {
  std::vector<int64_t> input;                                           ///< shape of one image or clip: {3, 224, 224}
  std::vector<int64_t> training_batches = {}, evaluation_batches = {};  ///< in images
  bool tries_precisions = false;                                        ///< bfloat16 and float32 are compared
  std::vector<model::ModelSpec> teachers = {};                          ///< see proof::Request
  std::string teacher_digest = {};
};
/// Who proves: see proof::ProverSettings.
struct ProverPlace {
  std::string program;        ///< path of stoker-prove; empty: not installed
  bool may_limit_isa = true;  ///< no other code in this process has used oneDNN
};
/// That of this program.
ProverPlace usual_prover();
/// Gives every rank of a run what find() returns on the root; empty: there is one rank.
using FromRoot = std::function<std::string(const std::function<std::string()>& find)>;
/// Proves it according to --prove-backend, takes the remedy where one is needed, and warns of it once. With `from_root`
/// the root does for all ranks, which make the call at the same place. Throws Error{backend} where nothing is right.
void prove_backend(const config::ResolvedOptions& options, const NetworkUse& use, const FromRoot& from_root = {},
                   const ProverPlace& prover = usual_prover());

/// A network with its weights.
struct Network {
  std::unique_ptr<engine::Task> task;
  std::shared_ptr<model::ImageModel> model;
  engine::Precision precision;
};
/// Proves the libraries for `use`, and builds the network that was saved. Throws Error{data} for weights that are not
/// of the network, and as prove_backend().
Network open_network(const config::ResolvedOptions& options, torch::Device device, const engine::SavedModel& saved,
                     const NetworkUse& use, const FromRoot& from_root = {}, const ProverPlace& prover = usual_prover());

}  // namespace stoker::deploy
