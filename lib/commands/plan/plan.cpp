// SPDX-License-Identifier: Apache-2.0
// `train plan`: what a run will take, without a run.
#include "commands/plan/plan.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "commands/plan/measure_epoch.h"
#include "commands/plan/plan_devices.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/file.h"
#include "engine/group/c10d/join.h"
#include "model/image_model.h"
#include "plan/memory_plan.h"
#include "train/failure/result_output.h"
#include "train/setup/assemble.h"
#include "train/setup/plan_run.h"
#include "train/setup/run_setup.h"

namespace stoker::train {
namespace {

using core::format;

/// The disk use of checkpoints once the run keeps as many as it may.
struct DiskPlan {
  int64_t checkpoint_bytes = 0, kept = 0;
  double free_bytes = 0;  ///< 0: not known
};

DiskPlan disk_plan(const config::ResolvedRunOptions& options, int64_t checkpoint_bytes) {
  std::filesystem::path folder = std::filesystem::absolute(options.run_dir);
  std::error_code ignored;
  while (!std::filesystem::exists(folder, ignored) && folder.has_relative_path()) folder = folder.parent_path();
  return {checkpoint_bytes, plan::most_checkpoints(options), static_cast<double>(core::free_bytes(folder.string()))};
}

std::string disk_line(const DiskPlan& disk) {
  const auto each = static_cast<double>(disk.checkpoint_bytes);
  return format("disk      checkpoints of {}, {} at most: {}{}", core::bytes_text(each), disk.kept,
                core::bytes_text(each * static_cast<double>(disk.kept)),
                disk.free_bytes > 0 ? format(" of {} free", core::bytes_text(disk.free_bytes)) : "");
}

/// Lines that can be shown before the libraries are proven and anything is tried.
std::vector<std::string> known_lines(const config::ResolvedOptions& options, const engine::Learner& learner,
                                     const plan::PlanInputs& inputs) {
  const plan::MemoryPlan memory = plan::make_memory_plan(inputs);
  std::vector<std::string> lines = {format("model     {}, {} parameters", options.model.model,
                                           core::count_text(model::parameter_count(*learner.model)))};
  for (const std::string& line : plan::plan_summary(memory, memory_budget(learner.device))) {
    lines.push_back(line + "; activations are estimates, measured next");
  }
  lines.push_back(disk_line(disk_plan(options.run, memory.checkpoint_bytes)));
  return lines;
}

std::string time_line(const plan::EpochEstimate& estimate) {
  return format(
      "time      {} per epoch of {} images and {} per validation: {} for {}; {:.0f} images/s over {}, "
      "{:.0f} % of it waiting for data",
      core::duration_text(estimate.epoch_seconds), core::count_text(estimate.train_images),
      core::duration_text(estimate.eval_seconds),
      core::duration_text(static_cast<double>(estimate.epochs) * (estimate.epoch_seconds + estimate.eval_seconds)),
      core::counted(estimate.epochs, "epoch"), estimate.images_per_second,
      core::counted(estimate.updates_measured, "update"), 100 * estimate.data_wait_share);
}

core::Json disk_json(const DiskPlan& disk) {
  return {{"checkpoint_bytes", disk.checkpoint_bytes},
          {"kept", disk.kept},
          {"free_bytes", disk.free_bytes > 0 ? core::Json(disk.free_bytes) : core::Json(nullptr)}};
}

/// The output of `train plan`.
struct Answer {
  core::Json json;
  std::string text;
};

plan::TriedUpdate tried_update(int64_t devices, int64_t batches, const plan::EpochEstimate& estimate) {
  return {devices, batches, estimate.update_seconds - estimate.exchange_seconds, estimate.exchange_seconds,
          estimate.eval_seconds};
}

/// Tries each number of devices that this machine has, and foresees the others.
class DeviceTimes {
 public:
  DeviceTimes(const Context& context, const config::ResolvedOptions& options, RunSetup& prepared)
      : context_(context), options_(options), prepared_(prepared), on_cpu_(options.device.device == "cpu") {}

  void find(std::vector<plan::DevicePlan>& plans) {
    for (const plan::DevicePlan& plan : plans) {
      if (plan.short_of.empty() || !options_.run.plan_check) try_one(plan);
    }
    if (tries_.empty() && !plans.empty() && plans.front().short_of.empty()) try_in_this_process();
    for (plan::DevicePlan& plan : plans) {
      if (tries_.empty() || !plan.short_of.empty()) continue;
      plan.time = plan::predict_update(plan, tries_, on_cpu_ ? cpus_ : 0);
    }
  }
  /// The estimate for the last number of devices that was tried.
  const std::optional<plan::EpochEstimate>& last() const { return last_; }

 private:
  void try_one(const plan::DevicePlan& plan) {
    const bool is_new = std::none_of(tries_.begin(), tries_.end(),
                                     [&](const plan::TriedUpdate& tried) { return tried.devices == plan.devices; });
    if (!is_new) return;
    const int64_t own = options_.train.replicas * options_.train.accumulation_steps;
    const int64_t batches = plan.replicas * plan.accumulation_steps / plan.devices;
    if (plan.devices == 1 && batches == own) return try_in_this_process();
    if (!on_cpu_ || plan.devices > cpus_ || !engine::can_join_processes()) return;
    if (const std::optional<plan::EpochEstimate> estimate = try_devices(context_, options_, plan)) {
      tries_.push_back(tried_update(plan.devices, batches, *estimate));
      last_ = estimate;
    }
  }

  void try_in_this_process() {
    last_ = measure_epoch(options_, prepared_.datasets, prepared_.learner, *prepared_.task);
    tries_.push_back(tried_update(1, options_.train.replicas * options_.train.accumulation_steps, *last_));
  }

  const Context& context_;
  const config::ResolvedOptions& options_;
  RunSetup& prepared_;
  const bool on_cpu_;
  const int64_t cpus_ = core::read_machine_facts().cpus;
  std::vector<plan::TriedUpdate> tries_;
  std::optional<plan::EpochEstimate> last_;
};

void write_json(const core::Json& json) {
  write_result("-", json.dump(1, ' ', false, core::Json::error_handler_t::replace) + "\n");
}

/// `is_written`: set once the result is on standard output.
Outcome make_plan(const Context& context, const PlanFlags& flags, bool& is_written) {
  config::Configuration& configuration = context.configuration;
  const DeviceQuestion question = device_question(flags, configuration);
  const int64_t fewest = *std::min_element(question.devices.begin(), question.devices.end());
  configuration.options.device.devices = config::Devices{fewest};
  configuration.options.train.replicas = replicas_on(configuration, question, fewest);
  RunSetup prepared;
  Settings settings(configuration, machine_shared_by(machine_with_accelerators(), fewest));
  const config::ResolvedOptions& options = settings.options();
  set_up_data(settings, /*measure=*/!configuration.flags.print_config, prepared);
  if (configuration.flags.print_config) {
    is_written = true;
    write_result("-", config::render_yaml(configuration, settings.resolution()));
    return {core::kExitOk, ""};
  }
  RunShare share;
  share.ranks = fewest;
  share.on_known = [&](const engine::Learner& learner, const plan::PlanInputs& known) {
    for (const std::string& line : known_lines(options, learner, known)) core::log_info("{}", line);
  };
  set_up_training(settings, /*resumes=*/false, prepared, share);

  std::vector<plan::DevicePlan> plans;
  if (question.is_requested || fewest > 1) {
    plans = plan_devices(question, configuration, settings, prepared.inputs, prepared.budget);
  }
  const plan::PlanInputs& inputs = plans.empty() ? prepared.inputs : plans.back().inputs;
  const plan::MemoryBudget& budget = plans.empty() ? prepared.budget : plans.back().budget;
  const plan::MemoryPlan memory = plan::make_memory_plan(inputs);
  const std::string short_of = plan::shortage(memory, budget);
  const DiskPlan disk = disk_plan(options.run, memory.checkpoint_bytes);
  Answer answer;
  answer.json = {
      {"batch_size", options.loader.batch_size},
      {"accumulation_steps", options.train.accumulation_steps},
      {"num_workers", options.loader.num_workers},
      {"memory", plan::plan_json(memory, budget)},
      {"fits", short_of.empty()},
      {"fits_with", short_of.empty() ? core::Json(nullptr) : core::Json(plan::largest_fitting_change(inputs, budget))},
      {"disk", disk_json(disk)},
      {"epoch", nullptr},
      {"devices", nullptr}};
  for (const std::string& line : plan::plan_table(memory, budget)) answer.text += line + "\n";
  for (const std::string& line : prepared.caches.lines) answer.text += "cache     " + line + "\n";
  answer.text += disk_line(disk) + "\n";
  DeviceTimes times(context, options, prepared);
  if (!plans.empty()) {
    times.find(plans);
    answer.json["devices"] = plan::device_plans_json(plans);
    answer.text += "\n";
    for (const std::string& line : plan::device_table(plans)) answer.text += line + "\n";
    if (times.last()) answer.json["epoch"] = *times.last();
  } else if (short_of.empty() || !options.run.plan_check) {
    const plan::EpochEstimate estimate = measure_epoch(options, prepared.datasets, prepared.learner, *prepared.task);
    answer.json["epoch"] = estimate;
    answer.text += time_line(estimate) + "\n";
  }
  is_written = true;
  write_result("-", flags.json ? core::json_page(answer.json) : core::terminal_text(answer.text));
  plan::require_enough_memory(inputs, budget, options.run.plan_check);
  return {core::kExitOk, "planned"};
}

}  // namespace

Outcome plan_run(const Context& context, const PlanFlags& flags) {
  if (!flags.trial.empty()) return measure_as_rank(context.configuration, flags.trial);
  if (flags.json) core::set_console_level(core::LogLevel::warning);  // standard output is for the object
  bool is_written = false;
  try {
    return make_plan(context, flags, is_written);
  } catch (const core::Error& error) {
    const bool lacks_memory = error.kind() == core::ErrorKind::out_of_memory;
    if (flags.json && !is_written) {
      write_json({{"fits", lacks_memory ? core::Json(false) : core::Json(nullptr)},
                  {"reason", error.what()},
                  {"hint", error.hint()}});
    }
    throw;
  }
}

}  // namespace stoker::train
