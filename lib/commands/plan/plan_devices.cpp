// SPDX-License-Identifier: Apache-2.0
#include "commands/plan/plan_devices.h"

#include <algorithm>
#include <filesystem>

#include "commands/plan/measure_epoch.h"
#include "config/table/parse_value.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/file.h"
#include "core/system/stop_signal.h"
#include "engine/run/plan.h"
#include "plan/memory_plan.h"
#include "train/launch/start_ranks.h"
#include "train/setup/assemble.h"
#include "train/setup/plan_run.h"
#include "train/setup/run_setup.h"
#include "train/work_on_devices.h"

namespace stoker::train {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;

/// The share of free memory while this process is alone.
plan::MemoryBudget budget_of_each(plan::MemoryBudget budget, int64_t processes) {
  if (budget.host_free_bytes > 0) {
    budget.host_free_bytes =
        std::max<int64_t>(1, (budget.host_held_bytes + budget.host_free_bytes) / processes - budget.host_held_bytes);
  }
  return budget;
}

/// Images and updates of an epoch.
engine::EpochPlan epoch_of(const config::ResolvedOptions& options, int64_t images) {
  const int64_t batch = options.loader.batch_size;
  engine::EpochPlan epoch;
  epoch.batch_size = batch;
  epoch.accumulation = options.train.accumulation_steps;
  epoch.replicas = options.train.replicas;
  epoch.batches = options.loader.drop_last ? images / batch : (images + batch - 1) / batch;
  epoch.images = options.loader.drop_last ? epoch.batches * batch : images;
  return epoch;
}

class DevicePlanner {
 public:
  DevicePlanner(const DeviceQuestion& question, const config::Configuration& configuration, const Settings& settings,
                const plan::PlanInputs& measured, const plan::MemoryBudget& budget)
      : question_(question), configuration_(configuration), settings_(settings), measured_(measured), budget_(budget) {}

  plan::DevicePlan plan_of(int64_t devices) const {
    plan::DevicePlan plan;
    plan.devices = devices;
    config::Options given = configuration_.options;
    given.train.replicas = replicas_on(configuration_, question_, devices);
    given.device.devices = config::Devices{devices};
    config::Facts facts = settings_.facts();
    facts.machine = machine_shared_by(facts.machine, devices);
    if (facts.num_workers && facts.num_workers->value > facts.machine.cpus) {
      facts.num_workers = {facts.machine.cpus, facts.machine.cpus_reason};
    }
    plan.budget = budget_of_each(budget_, devices);
    const config::Resolution before = config::resolve(given, facts);
    plan::PlanInputs inputs = inputs_of(before.options, plan.devices);
    if (before.was_automatic(before.options.loader.batch_size)) {
      facts.batch_size = plan::choose_batch(batch_rules(before), inputs, plan.budget);
    }
    const config::ResolvedOptions options = config::resolve(given, facts).options;
    inputs = inputs_of(options, plan.devices);
    inputs.cache_bytes = cache_of(inputs, plan.budget);
    fill(options, inputs, plan);
    return plan;
  }

 private:
  plan::PlanInputs inputs_of(const config::ResolvedOptions& options, int64_t ranks) const {
    plan::PlanInputs inputs = measured_;
    inputs.batch_size = options.loader.batch_size;
    inputs.val_batch_size = options.loader.val_batch_size;
    inputs.accumulation_steps = options.train.accumulation_steps;
    inputs.num_workers = options.loader.num_workers;
    inputs.replicas = options.train.replicas;
    inputs.ranks = ranks;
    inputs.cache_bytes = 0;
    return inputs;
  }

  /// Each process keeps a cache of its own, within half of what the others leave to it.
  int64_t cache_of(const plan::PlanInputs& inputs, const plan::MemoryBudget& budget) const {
    const int64_t needed = plan::make_memory_plan(inputs).host_bytes - budget.host_held_bytes;
    const int64_t half = std::max<int64_t>(0, budget.host_free_bytes - std::max<int64_t>(0, needed)) / 2;
    return std::min(measured_.cache_bytes, half);
  }

  void fill(const config::ResolvedOptions& options, const plan::PlanInputs& inputs, plan::DevicePlan& plan) const {
    const engine::EpochPlan epoch = epoch_of(options, measured_.train_images);
    plan.replicas = options.train.replicas;
    plan.accumulation_steps = options.train.accumulation_steps;
    plan.batch_size = options.loader.batch_size;
    plan.updates_per_epoch = epoch.updates();
    plan.images_per_epoch = epoch.images;
    plan.num_workers = options.loader.num_workers;
    plan.prefetch_factor = options.loader.prefetch_factor;
    plan.learning_rate = options.optim.lr;
    plan.inputs = inputs;
    plan.memory = plan::make_memory_plan(inputs);
    plan.short_of = plan::shortage(plan.memory, plan.budget);
    if (plan.devices > 1) plan.exchange_bytes = inputs.gradient_bytes + inputs.buffer_bytes;
  }

  const DeviceQuestion& question_;
  const config::Configuration& configuration_;
  const Settings& settings_;
  const plan::PlanInputs& measured_;
  const plan::MemoryBudget& budget_;
};

}  // namespace

DeviceQuestion device_question(const PlanFlags& flags, const config::Configuration& configuration) {
  DeviceQuestion question;
  question.replicas_given = !configuration.options.train.replicas.is_auto();
  question.is_requested = !flags.devices.empty();
  if (flags.devices.empty()) {
    question.devices = {configuration.options.device.devices.count};
  } else {
    for (const std::string& count : core::split_words(flags.devices, ',')) {
      int64_t devices = 0;
      if (!config::read_integer(count, 1, 4096, devices).empty()) {
        throw Error(ErrorKind::usage,
                    format("--devices: {} is not accepted; {}", config::shown(count), config::range_text(1, 4096)),
                    "train plan --help lists every flag");
      }
      question.devices.push_back(devices);
    }
  }
  return question;
}

int64_t replicas_on(const config::Configuration& configuration, const DeviceQuestion& question, int64_t devices) {
  if (!question.replicas_given) return devices;
  const int64_t replicas = configuration.options.train.replicas.value();
  if (replicas % devices == 0) return replicas;
  throw Error(ErrorKind::config,
              format("replicas {} is not a multiple of {} devices: each computes as many", replicas, devices),
              "choose another --replicas, or leave it out: there are then as many as devices");
}

std::vector<plan::DevicePlan> plan_devices(const DeviceQuestion& question, const config::Configuration& configuration,
                                           const Settings& settings, const plan::PlanInputs& measured,
                                           const plan::MemoryBudget& budget) {
  const DevicePlanner planner(question, configuration, settings, measured, budget);
  std::vector<plan::DevicePlan> plans;
  for (const int64_t devices : question.devices) plans.push_back(planner.plan_of(devices));
  return plans;
}

namespace {

using core::format;

constexpr uint64_t kMaxReportBytes = 1 << 20;

/// A file of its own, gone with this.
class ReportFile {
 public:
  ReportFile() : path_(core::temporary_of(core::temporary_folder() + "/stoker-trial")) {
    core::remove_temporaries_of(core::temporary_folder() + "/stoker-trial");
  }
  ~ReportFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  ReportFile& operator=(ReportFile&&) = delete;  // not copied, not moved
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

Outcome measure(const config::Configuration& configuration, const std::string& report, const JoinedRanks& ranks) {
  Settings settings(configuration, share_of_machine(ranks.place()));
  RunSetup prepared;
  set_up_data(settings, /*measure=*/true, prepared);
  set_up_training(settings, /*resumes=*/false, prepared, share_of_trial(ranks));
  ranks.wait_for_all();
  const plan::EpochEstimate estimate =
      measure_epoch(settings.options(), prepared.datasets, prepared.learner, *prepared.task, ranks.group());
  if (ranks.is_root()) {
    core::write_file_atomically(report, core::json_line(estimate), /*durable=*/false);
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
      return core::parse_json(core::read_file(report.path(), kMaxReportBytes), report.path())
          .get<plan::EpochEstimate>();
    }
    core::log_warning("{} could not be tried: exit code {}", what, end.exit_code);
  } catch (const core::Error& error) {
    core::log_warning("{} could not be tried: {}", what, error.what());
  }
  return std::nullopt;
}

Outcome measure_as_rank(const config::Configuration& configuration, const std::string& report) {
  const std::optional<RankLocation> place = rank_location(process_environment, {});
  if (!place) return measure(configuration, report, JoinedRanks());
  return work_as_rank(configuration.options, *place,
                      [&](const JoinedRanks& ranks) { return measure(configuration, report, ranks); });
}

}  // namespace stoker::train
