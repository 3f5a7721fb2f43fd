// SPDX-License-Identifier: Apache-2.0
#include "app/observing.h"

#include <cstdlib>

#include "app/diagnosing.h"
#include "engine/device.h"

namespace stoker::app {
namespace {

std::optional<observe::ResourceSampler>& sampled(std::optional<observe::ResourceSampler>& sampler,
                                                 torch::Device device) {
  if (!is_unwatched_for_tests())
    sampler.emplace(observe::ResourceSampler::Settings{engine::pci_bus_id(device)});
  return sampler;
}

}  // namespace

bool is_unwatched_for_tests() {
  return std::getenv("STOKER_TEST_UNWATCHED") != nullptr;
}

Watch::Watch(const Watched& run, const std::string& run_dir, observe::Console& console)
    : diagnoser_(known_facts(run.options, run.machine, run.data_facts, *run.datasets.train),
                 ceiling_probes(run.options, run.machine, *run.datasets.train, run.trainee, run.task),
                 sampled(resources_, run.trainee.device) ? &*resources_ : nullptr),
      run_files_(run_dir, resources_ ? &*resources_ : nullptr, &diagnoser_),
      worst_file_(run_dir, run.options, run.datasets.val),
      progress_(console, resources_ ? &*resources_ : nullptr, &diagnoser_) {
  if (!resources_) return;
  if (run.options.run.profile.unit != config::Interval::Unit::never) {
    observers_.add(profile_.emplace(run_dir, run.options.run.profile));
  }
  observers_.add(*resources_);  // before those that read what it summed up
  observers_.add(diagnoser_);   // likewise
  observers_.add(run_files_);
  if (run.options.run.tensorboard) observers_.add(tensorboard_.emplace(run_dir, &*resources_));
  observers_.add(worst_file_);
  observers_.add(progress_);
}

}  // namespace stoker::app
