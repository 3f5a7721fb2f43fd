// SPDX-License-Identifier: Apache-2.0
#include "train/setup/identity.h"

#include "core/hash.h"
#include "core/system/file.h"
#include "core/system/machine.h"
#include "data/image/opencv_encode.h"
#include "engine/device/device.h"
#include "proof/standing.h"
#include "train/setup/assemble.h"
#include "train/setup/network_file.h"

namespace stoker::train {
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

engine::RunIdentity identity_of(const config::ResolvedOptions& options, const data::Datasets& datasets, int64_t ranks) {
  engine::RunIdentity identity;
  identity.config_yaml = config::render_yaml(options);
  identity.preprocess = config::to_json(preprocessing_for(options, *datasets.train));
  identity.training_options = config::training_relevant_values(options);
  identify_network_file(options, identity);
  identity.data_fingerprint = datasets.train->fingerprint() + "+" + datasets.val->fingerprint();
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
