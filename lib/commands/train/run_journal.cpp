// SPDX-License-Identifier: Apache-2.0
#include "commands/train/run_journal.h"

#include "core/format.h"
#include "core/log.h"
#include "core/system/file.h"
#include "train/setup/network_file.h"
#include "train/setup/plan_run.h"

namespace stoker::train {

RunJournal::RunJournal(const JoinedRanks& ranks, const std::string& run_dir) : ranks_(ranks), run_dir_(run_dir) {}

void RunJournal::open(bool is_fresh) {
  if (ranks_.is_root()) {
    const std::string aside = is_fresh ? set_run_aside(run_dir_) : "";
    if (!aside.empty()) core::log_info("the run in {} was set aside as {}", run_dir_, aside);
    lock_ = std::make_unique<RunDirectory>(run_dir_);
  }
  ranks_.wait_for_all();  // the root has made and locked it
  const std::string name = ranks_.is_root() ? "train.log" : core::format("train.rank-{}.log", ranks_.place().rank);
  core::open_log_file(run_dir_ + "/" + name, /*may_be_link=*/false);
}

void RunJournal::begin(const ObservedRun& run, const config::Configuration& given, const config::Resolution& resolution,
                       const plan::MemoryPlan& memory, const plan::MemoryBudget& budget, observe::Console& console) {
  if (!ranks_.is_root()) return;
  core::write_file_atomically(run_dir_ + "/config.yaml", config::render_yaml(given, resolution), /*durable=*/true);
  keep_network_file(run.options, run_dir_);
  write_plan_file(run_dir_, memory, budget, /*observed=*/std::nullopt);
  observing_.emplace(run, run_dir_, console);
}

engine::OperatorRecorder& RunJournal::operators(torch::Device device) {
  if (observing_ && observing_->operators() != nullptr) return *observing_->operators();
  if (!no_profile_) no_profile_.emplace(device, /*may_use_events=*/false);
  return *no_profile_;
}

void RunJournal::end(const plan::MemoryPlan& memory, const plan::MemoryBudget& budget, engine::Learner& learner) {
  if (!ranks_.is_root()) return;
  write_plan_file(run_dir_, memory, budget, observed_memory(learner.device));
  observing_->write_worst_samples(*learner.model, learner.device);
}

}  // namespace stoker::train
