// SPDX-License-Identifier: Apache-2.0
#include "train/observers/observing.h"

#include "engine/device/device.h"
#include "train/setup/hooks.h"

namespace stoker::train {

RunObservers::RunObservers(const ObservedRun& run, const std::string& run_dir, observe::Console& console)
    : resources_(observe::ResourceSampler::Settings{engine::driver_names(run.device)}),
      diagnosing_({run.options, run.machine, run.data_facts, *run.datasets.train, run.task, run.device, run.compute,
                   run.bfloat16_speed, run.other_layout_speed},
                  resources_),
      run_files_(run_dir),
      worst_file_(run_dir, run.options, run.datasets.val),
      split_overlap_(run.datasets.train, run.datasets.val),
      progress_(console, &resources_) {
  if (run.options.run.profile.unit != config::Interval::Unit::never) {
    observers_.add(profile_.emplace(run_dir, run.options.run.profile));
    observers_.add(operators_.emplace(run_dir, run.options.run.profile, run.device, !run.records_graphs));
  }
  observers_.add(run_files_);
  if (run.options.run.tensorboard) observers_.add(tensorboard_.emplace(run_dir));
  observers_.add(worst_file_);
  observers_.add(progress_);
  observers_.add(split_overlap_);  // behind the line of the epoch
  hook_ = hook_observers(observers_);
}

engine::Observer& RunObservers::observer() {
  if (hook_) return *hook_;
  return observers_;
}

}  // namespace stoker::train
