// SPDX-License-Identifier: Apache-2.0
#include "commands/plan/plan_trial.h"

#include <unistd.h>

#include <filesystem>

#include "commands/plan/measure_epoch.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/file.h"
#include "core/system/stop_signal.h"
#include "train/launch/start_ranks.h"
#include "train/setup/rank_share.h"
#include "train/setup/run_setup.h"
#include "train/work_on_devices.h"

namespace stoker::train {
namespace {

using core::format;

constexpr uint64_t kMaxReportBytes = 1 << 20;

/// A file of its own, gone with this.
class ReportFile {
 public:
  ReportFile() : path_(format("{}/stoker-trial.tmp-{}", core::temporary_folder(), ::getpid())) {
    core::remove_temporaries_of(core::temporary_folder() + "/stoker-trial");
  }
  ~ReportFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  ReportFile(const ReportFile&) = delete;
  ReportFile& operator=(const ReportFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

/// The command line of this process, and what `plan` has decided: of a repeated flag the last one counts.
std::vector<std::string> words_of_trial(const Context& context, const config::ResolvedOptions& options,
                                        const plan::DevicePlan& plan, const std::string& report) {
  std::vector<std::string> words(context.argv, context.argv + context.argc);
  const auto add = [&](const std::string& flag, const std::string& value) { words.insert(words.end(), {flag, value}); };
  add("--trial", report);
  add("--replicas", std::to_string(plan.replicas));
  add("--accumulation-steps", std::to_string(plan.accumulation_steps));
  add("--batch-size", std::to_string(plan.batch_size));
  add("--total-batch-size", "0");
  add("--num-workers", std::to_string(plan.num_workers));
  add("--log-level", "warning");
  words.emplace_back(options.precision.amp ? "--amp" : "--no-amp");
  words.emplace_back(options.precision.channels_last ? "--channels-last" : "--no-channels-last");
  return words;
}

plan::EpochEstimate estimate_of(const core::Json& json) {
  plan::EpochEstimate estimate;
  estimate.train_images = json.at("train_images");
  estimate.batch_size = json.at("batch_size");
  estimate.updates_measured = json.at("updates_measured");
  estimate.images_per_second = json.at("images_per_second");
  estimate.data_wait_share = json.at("data_wait_share");
  estimate.epoch_seconds = json.at("epoch_seconds");
  estimate.eval_seconds = json.at("eval_seconds");
  estimate.epochs = json.at("epochs");
  estimate.update_seconds = json.at("update_seconds");
  estimate.exchange_seconds = json.at("exchange_seconds");
  return estimate;
}

Outcome measure(const config::Configuration& configuration, const std::string& report, const JoinedRanks& ranks) {
  Settings settings(configuration, share_of_machine(ranks.place()));
  RunSetup prepared;
  set_up_data(settings, /*measure=*/true, prepared);
  set_up_training(settings, /*resumes=*/false, prepared, share_of_trial(ranks));
  ranks.wait_for_all();
  const plan::EpochEstimate estimate =
      measure_epoch(settings.options(), prepared.datasets, prepared.learner, *prepared.task, ranks.group());
  if (ranks.is_root()) {
    core::write_file_atomically(
        report, plan::estimate_json(estimate).dump(-1, ' ', false, core::Json::error_handler_t::replace),
        /*durable=*/false);
  }
  ranks.wait_for_all();  // one that leaves early would be missed
  return {core::kExitOk, ""};
}

}  // namespace

std::optional<plan::EpochEstimate> try_devices(const Context& context, const config::ResolvedOptions& options,
                                               const plan::DevicePlan& plan) {
  const ReportFile report;
  const std::vector<std::string> words = words_of_trial(context, options, plan, report.path());
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  arguments.push_back(nullptr);
  const std::string what = format("{} process{}", plan.devices, plan.devices == 1 ? "" : "es");
  core::log_debug("trying {}", what);
  try {
    const RanksEnd end = run_ranks({arguments.data(), static_cast<int>(plan.devices)});
    core::throw_if_stopped();
    if (end.exit_code == core::kExitOk) {
      return estimate_of(core::parse_json(core::read_file(report.path(), kMaxReportBytes), report.path()));
    }
    core::log_warning("{} could not be tried: exit code {}", what, end.exit_code);
  } catch (const core::Error& error) {
    core::log_warning("{} could not be tried: {}", what, error.what());
  }
  return std::nullopt;
}

Outcome measure_as_rank(const config::Configuration& configuration, const std::string& report) {
  const std::optional<RankPlace> place = rank_place(process_environment, {});
  if (!place) return measure(configuration, report, JoinedRanks());
  return work_with_others(configuration.options, *place,
                          [&](const JoinedRanks& ranks) { return measure(configuration, report, ranks); });
}

}  // namespace stoker::train
