// SPDX-License-Identifier: Apache-2.0
#include "train/setup/network_file.h"

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"
#include "core/system/file.h"
#include "core/system/machine.h"
#include "data/image/contact_sheet.h"
#include "engine/device/device.h"
#include "model/script/network_library.h"
#include "proof/standing.h"
#include "train/setup/assemble.h"
#include "train/setup/teacher.h"

namespace stoker::train {
namespace {

namespace fs = std::filesystem;
using core::Error;
using core::ErrorKind;
using core::format;

constexpr char kCopy[] = "network.ts";
constexpr char kIdentity[] = "TorchScript, SHA-256 ";

std::string identity_of_file(const std::string& path) { return kIdentity + model::read_network_file(path).sha256; }

}  // namespace

void require_one_copy_of_network(const config::ResolvedOptions& options) {
  if (!model::is_network_file(options.model.model)) return;
  const auto refuse = [&](const char* option, const char* why) {
    throw Error(ErrorKind::config, format("{}: {}, which the code in {} cannot", option, why, options.model.model),
                format("leave {} out, or choose one of the networks that train list models lists", option));
  };
  const int64_t replicas = options.train.replicas;
  if (replicas > 1) refuse("--replicas or --devices above 1", "each replica draws from random numbers of its own");
  if (options.optim.layer_decay != 1) refuse("--layer-decay", "each layer has a learning rate of its own");
}

void identify_network_file(const config::ResolvedOptions& options, engine::RunIdentity& identity) {
  if (!model::is_network_file(options.model.model)) return;
  config::ResolvedOptions copy = options;
  const config::Table table(copy);
  const std::string& model_option = table.row_of(copy.model.model).name;
  for (config::TrainingOption& option : identity.training_options) {
    if (option.name == model_option) option.value = identity_of_file(options.model.model);
  }
}

bool is_network_identity(const std::string& model) { return model.rfind(kIdentity, 0) == 0; }

void keep_network_file(const config::ResolvedOptions& options, const std::string& run_directory) {
  if (!model::is_network_file(options.model.model)) return;
  const std::string copy = (fs::path(run_directory) / kCopy).string();
  std::error_code ignored;
  if (fs::equivalent(copy, options.model.model, ignored)) return;
  const model::NetworkFile file = model::read_network_file(options.model.model);
  if (core::file_exists(copy) && model::read_network_file(copy).sha256 == file.sha256) return;
  core::write_file_atomically(copy, file.bytes, /*durable=*/true);
}

void use_kept_network_file(const std::string& run_directory, config::Configuration& configuration) {
  const std::string copy = (fs::path(run_directory) / kCopy).string();
  if (!model::is_network_file(configuration.options.model.model) || !core::file_exists(copy)) return;
  configuration.table.set(configuration.table.row_of(configuration.options.model.model), copy,
                          {config::Origin::Kind::run, run_directory});
}

void use_network_file_of_run(const std::string& checkpoint, const core::Json& manifest,
                             config::Configuration& configuration) {
  const std::string& named = configuration.options.model.model;
  if (!model::is_network_file(named)) return;
  std::error_code ignored;
  use_kept_network_file(fs::weakly_canonical(checkpoint, ignored).parent_path().parent_path().string(), configuration);
  const std::string& model_option = configuration.table.row_of(named).name;
  const auto options = manifest.find("training_options");
  const bool is_saved = options != manifest.end() && options->is_object() && options->contains(model_option);
  const std::string found = identity_of_file(named);
  const core::Json saved = is_saved ? options->at(model_option) : core::Json();
  if (saved == found) return;
  throw Error(ErrorKind::config,
              format("{} was written with another network: {} is {}, the checkpoint has {}", checkpoint,
                     core::printable(named), found, saved.is_string() ? saved.get<std::string>() : "nothing"),
              format("put the file that the run began with into its directory as {}", kCopy));
}

namespace {

/// Empty where the system has none.
const std::string& executable_digest() {
  static const std::string digest = [] {
    constexpr uint64_t kMaxBytes = uint64_t{4} << 30;
    try {
      return core::hash_hex(core::read_file("/proc/self/exe", kMaxBytes));
    } catch (const core::Error&) {
      return std::string();
    }
  }();
  return digest;
}

}  // namespace

core::Json program_facts(const config::ResolvedOptions& options) {
  return {{"version", STOKER_VERSION},
          {"executable", executable_digest()},
          {"libtorch", engine::libtorch_text()},
          {"images", data::image_library_text()},
          {"processor", core::read_machine_facts().cpu_model},
          {"device", options.device.device},
          {"threads", options.device.threads},
          {"backend", proof::summary_text(proof::standing())}};
}

engine::RunIdentity known_identity(const config::ResolvedOptions& options, const data::Datasets& datasets) {
  engine::RunIdentity identity;
  identity.training_options = config::training_relevant_values(options);
  identify_network_file(options, identity);
  identify_teacher(options, identity);
  identity.data_fingerprint = datasets.train->fingerprint() + "+";
  if (datasets.has_validation) identity.data_fingerprint += datasets.val->fingerprint();
  return identity;
}

engine::RunIdentity identity_of(const config::ResolvedOptions& options, const data::Datasets& datasets,
                                const engine::StartingWeights& started_from, int64_t ranks) {
  engine::RunIdentity identity = known_identity(options, datasets);
  identity.started_from = started_from;
  identity.config_yaml = config::render_yaml(options);
  identity.preprocess = config::to_json(preprocessing_for(options, *datasets.train));
  identity.class_names = datasets.train->learned_names();
  identity.threads = options.device.threads;
  identity.computed_by = engine::computing_text(torch::Device(options.device.device));
  const std::string remedy = proof::text_of(proof::standing().remedy);
  if (!remedy.empty()) identity.computed_by += "; " + remedy;
  if (config::bits_depend_on_ranks(options.device.exchange)) identity.ranks = ranks;
  identity.program = program_facts(options);
  return identity;
}

}  // namespace stoker::train
