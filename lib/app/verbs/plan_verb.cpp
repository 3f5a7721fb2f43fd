// SPDX-License-Identifier: Apache-2.0
// `train plan`: what a run will take, without a run.
#include <filesystem>

#include "app/app.h"
#include "app/output/result_output.h"
#include "app/setup/assemble.h"
#include "app/setup/measure_epoch.h"
#include "app/setup/plan_run.h"
#include "app/setup/run_setup.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/file.h"
#include "plan/refusals.h"

namespace stoker::app {
namespace {

using core::format;

/// What checkpoints take once the run keeps as many as it may.
struct DiskPlan {
  int64_t checkpoint_bytes = 0, kept = 0;
  double free_bytes = 0;  ///< 0: not known
};

DiskPlan disk_plan(const config::ResolvedRunOptions& options, int64_t checkpoint_bytes) {
  std::filesystem::path folder = std::filesystem::absolute(options.run_dir);
  std::error_code ignored;
  while (!std::filesystem::exists(folder, ignored) && folder.has_relative_path()) folder = folder.parent_path();
  // One more while it is written.
  return {checkpoint_bytes, options.keep_last + (options.save_best ? 1 : 0) + 1,
          static_cast<double>(core::free_bytes(folder.string()))};
}

std::string disk_line(const DiskPlan& disk) {
  const auto each = static_cast<double>(disk.checkpoint_bytes);
  return format("disk      checkpoints of {}, {} at most: {}{}", core::bytes_text(each), disk.kept,
                core::bytes_text(each * static_cast<double>(disk.kept)),
                disk.free_bytes > 0 ? format(" of {} free", core::bytes_text(disk.free_bytes)) : "");
}

std::string time_line(const plan::EpochEstimate& estimate) {
  return format(
      "time      {} per epoch of {} images and {} per validation: {} for {} epochs; {:.0f} images/s over {} updates, "
      "{:.0f} % of it waiting for data",
      core::duration_text(estimate.epoch_seconds), core::count_text(estimate.train_images),
      core::duration_text(estimate.eval_seconds),
      core::duration_text(static_cast<double>(estimate.epochs) * (estimate.epoch_seconds + estimate.eval_seconds)),
      estimate.epochs, estimate.images_per_second, estimate.updates_measured, 100 * estimate.data_wait_share);
}

core::Json disk_json(const DiskPlan& disk) {
  return {{"checkpoint_bytes", disk.checkpoint_bytes},
          {"kept", disk.kept},
          {"free_bytes", disk.free_bytes > 0 ? core::Json(disk.free_bytes) : core::Json(nullptr)}};
}

}  // namespace

Outcome plan(const Invocation& invocation) {
  const config::Configuration& configuration = invocation.configuration;
  const bool as_json = configuration.command.json;
  if (as_json) core::set_console_level(core::LogLevel::warning);  // standard output is for the object
  RunSetup prepared;
  Settings settings(configuration);
  const config::ResolvedOptions& options = settings.options();
  set_up_data(settings, /*measure=*/!configuration.command.print_config, prepared);
  if (configuration.command.print_config) {
    write_result("-", config::render_yaml(configuration, settings.resolution()));
    return {core::kExitOk, ""};
  }
  set_up_training(settings, /*resumes=*/false, prepared);

  const plan::MemoryPlan memory = plan::make_memory_plan(prepared.inputs);
  const std::string short_of = plan::shortage(memory, prepared.room);
  const DiskPlan disk = disk_plan(options.run, memory.checkpoint_bytes);
  core::Json json = {
      {"batch_size", options.loader.batch_size},
      {"accumulation_steps", options.train.accumulation_steps},
      {"num_workers", options.loader.num_workers},
      {"memory", plan::plan_json(memory, prepared.room)},
      {"fits", short_of.empty()},
      {"fits_with",
       short_of.empty() ? core::Json(nullptr) : core::Json(plan::largest_that_fits(prepared.inputs, prepared.room))},
      {"disk", disk_json(disk)},
      {"epoch", nullptr}};
  std::string text;
  for (const std::string& line : plan::plan_table(memory, prepared.room)) text += line + "\n";
  for (const std::string& line : prepared.caches.lines) text += "cache     " + line + "\n";
  text += disk_line(disk) + "\n";
  if (short_of.empty() || !options.run.plan_check) {
    const plan::EpochEstimate estimate = measure_epoch(options, prepared.datasets, prepared.learner, *prepared.task);
    json["epoch"] = plan::estimate_json(estimate);
    text += time_line(estimate) + "\n";
  }
  write_result("-", as_json ? json.dump(1) + "\n" : text);
  plan::refuse_what_does_not_fit(prepared.inputs, prepared.room, options.run.plan_check);
  return {core::kExitOk, "planned"};
}

}  // namespace stoker::app
