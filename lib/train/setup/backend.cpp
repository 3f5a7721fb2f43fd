// SPDX-License-Identifier: Apache-2.0
#include "train/setup/backend.h"

#include <algorithm>

#include "core/log.h"
#include "core/system/file.h"
#include "engine/device/device.h"
#include "model/script/network_library.h"
#include "proof/standing.h"
#include "train/setup/assemble.h"
#include "train/setup/plan_run.h"

namespace stoker::train {
namespace {

proof::Effort effort_of(const config::ResolvedOptions& options) {
  switch (options.precision.prove_backend) {
    case config::ProveBackend::off: return proof::Effort::off;
    case config::ProveBackend::automatic: return proof::Effort::automatic;
    case config::ProveBackend::full: return proof::Effort::full;
  }
  return proof::Effort::automatic;
}

/// A batch and the short one at the end of an epoch of `images` images.
std::vector<int64_t> batches_of(int64_t images, int64_t batch, bool drops_last) {
  const int64_t whole = std::min(batch, images), last = images % batch;
  std::vector<int64_t> sizes = {std::max<int64_t>(1, whole)};
  if (last > 0 && !drops_last && last != whole) sizes.push_back(last);
  return sizes;
}

std::vector<std::string> precisions_of(const config::ResolvedOptions& options, const NetworkUse& use) {
  const bool is_half = options.precision.amp_dtype == config::AmpDtype::float16;
  const std::string reduced = is_half ? "float16" : "bfloat16";
  if (use.tries_precisions && options.device.device == "cpu") return {"", reduced};
  return {options.precision.amp ? reduced : ""};
}

proof::Request request_of(const config::ResolvedOptions& options, const NetworkUse& use) {
  proof::Request request;
  request.network = model_spec(options);
  if (model::is_network_file(request.network.name) && model::trusts_network_files()) {
    request.network_digest = model::read_network_file(request.network.name).sha256;
  }
  request.freeze = options.model.freeze;
  request.trusts_network_file = model::trusts_network_files();
  request.input = use.input;
  request.device = options.device.device;
  request.deterministic = options.train.deterministic;
  request.tf32 = options.precision.tf32;
  for (const std::string& precision : precisions_of(options, use)) {
    const auto add = [&](bool trains, int64_t images) {
      request.passes.push_back({trains, images, precision, options.precision.channels_last, options.device.threads});
    };
    for (const int64_t images : use.training_batches) add(true, images);
    for (const int64_t images : use.evaluation_batches) add(false, images);
  }
  return request;
}

}  // namespace

NetworkUse training_use(const Settings& settings, const data::Datasets& datasets) {
  const config::ResolvedOptions& options = settings.options();
  NetworkUse use;
  use.input = network_input(transform_plan(options, *datasets.train, /*training=*/true).shape);
  use.training_batches = batches_of(datasets.train->size(), options.loader.batch_size, options.loader.drop_last);
  if (options.train.auto_micro_batch) {
    const std::vector<int64_t> batches = use.training_batches;  // UpdateStep divides each as evenly as it goes
    for (const int64_t batch : batches) {
      for (int64_t parts = 2; batch / parts > 1; parts *= 2) {
        for (const int64_t images : {batch / parts, (batch + parts - 1) / parts})
          use.training_batches.push_back(images);
      }
    }
  }
  use.evaluation_batches = batches_of(datasets.val->size(), options.loader.val_batch_size, /*drops_last=*/false);
  // What is measured before training: memory on few images, operations on one.
  constexpr int64_t kFewImages = 4;
  use.training_batches.push_back(kFewImages);
  use.evaluation_batches.push_back(1);
  return use;
}

NetworkUse evaluation_use(const config::ResolvedOptions& options, const data::Source& source) {
  NetworkUse use;
  use.input = network_input(transform_plan(options, source, /*training=*/false).shape);
  use.evaluation_batches = batches_of(source.size(), options.loader.val_batch_size, /*drops_last=*/false);
  return use;
}

NetworkUse benchmark_use(const config::ResolvedOptions& options, std::vector<int64_t> input) {
  NetworkUse use;
  use.input = std::move(input);
  use.training_batches = {options.loader.batch_size};
  return use;
}

NetworkUse benchmark_use(const config::ResolvedOptions& options, const data::Source& source) {
  return benchmark_use(options, network_input(transform_plan(options, source, /*training=*/true).shape));
}

ProverPlace usual_prover() { return {core::find_beside_program("stoker-prove", "../libexec/stoker")}; }

void prove_backend(const config::ResolvedOptions& options, const NetworkUse& use, const FromRoot& from_root,
                   const ProverPlace& prover) {
  static bool has_computed = false;  // oneDNN reads the limit of its instruction set once
  bool is_root = false;
  const auto find = [&] {
    is_root = true;
    const proof::Effort effort = effort_of(options);
    const std::string device = engine::computing_text(torch::Device(options.device.device));
    proof::prove_and_apply(request_of(options, use), effort, prover.program, device,
                           prover.may_limit_isa && !has_computed);
    return proof::standing_json();
  };
  const std::string found = from_root ? from_root(find) : find();
  if (!is_root) proof::follow(found);
  has_computed = true;
  if (is_root && !proof::standing().unproven.empty()) {
    core::log_warning("backend: the libraries are not proven: {}", proof::standing().unproven);
  }
  static std::string warned_of;
  const std::string warning = proof::warning_text(proof::standing());
  if (is_root && !warning.empty() && warning != warned_of) core::log_warning("backend: {}", warning);
  warned_of = warning;
}

}  // namespace stoker::train
