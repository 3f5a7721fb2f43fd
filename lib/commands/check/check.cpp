// SPDX-License-Identifier: Apache-2.0
// `train check`: measures this machine and recommends settings.
#include "commands/check/check.h"

#include <ATen/Context.h>

#include <algorithm>

#include "commands/check/check_report.h"
#include "commands/plan/measure_epoch.h"
#include "commands/train/card_lines.h"
#include "commands/train/check_data_files.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "data/open_datasets.h"
#include "engine/device/device.h"
#include "model/model.h"
#include "observe/resources/hardware.h"
#include "proof/standing.h"
#include "train/failure/result_output.h"
#include "train/setup/assemble.h"
#include "train/setup/backend.h"
#include "train/setup/run_setup.h"
#include "train/setup/settings.h"

namespace stoker::train {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;

constexpr double kSecondsPerSpeed = 0.3;  // nine of them
constexpr double kCheckedThreadSeconds = 0.9;
constexpr double kStorageSeconds = 1;
constexpr int64_t kImagesWithoutData = 8;  // a batch of the proof where there is no data yet

void read_driver(CheckFacts& facts) {
  const observe::Nvml nvml;
  facts.driver = driver_and_libraries(nvml);
  facts.host = observe::read_host_facts();
  for (observe::CardFacts& card : nvml.cards()) {
    facts.cards.push_back(observe::placed(std::move(card)));
  }
}

/// A device that is requested and missing is a finding here, not an error: the rest is still measured, on the CPU.
Settings settings_or_note(config::Configuration& configuration, CheckFacts& facts) {
  try {
    return Settings(configuration, facts.machine);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unavailable) throw;
    facts.missing.push_back(error.what());
    configuration.options.device.device = std::string("cpu");
    return Settings(configuration, facts.machine);
  }
}

void measure_storage(const config::Configuration& configuration, CheckFacts& facts) {
  facts.data_dir = configuration.options.data.data_dir;
  try {
    facts.storage = data::probe_storage(facts.data_dir, kStorageSeconds);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::no_input) throw;
    facts.storage_error = error.what();
    if (!configuration.flags.names_data) return;
    facts.missing.push_back(error.what());
    core::log_warning("{}; measuring the machine without it", error.what());
  }
}

/// A check needs files, not splits: where there is only one, or class folders lie in the folder itself, a part
/// is held out, half so that tiny folders have some in both. Throws core::Error: what was wrong with the data as given.
data::Datasets open_files(config::DataOptions options) {
  options.stage_dir.clear();  // the files themselves are looked at
  try {
    return data::open_datasets(options);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::no_input || options.val_fraction > 0 || options.val_split) throw;
    options.val_fraction = 0.5;
    try {
      return data::open_datasets(options);
    } catch (const Error&) {
      throw error;
    }
  }
}

/// Whether there are bad files. A folder that is not a data set is none of its business.
bool inspect_data(const config::Configuration& configuration, bool all_files, CheckFacts& facts) {
  if (!configuration.flags.names_data || !facts.missing.empty()) return false;
  const config::DataOptions& given = configuration.options.data;
  try {
    facts.files = check_data_files(open_files(given), decode_limits(given), facts.num_workers, all_files);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::no_input && error.kind() != ErrorKind::data && error.kind() != ErrorKind::config) {
      throw;
    }
    facts.files_error = error.what();
  }
  return std::any_of(facts.files.begin(), facts.files.end(), [](const auto& split) { return split.second.bad > 0; });
}

/// Data that is not there is a finding of the check, not of its configuration: what depends on it stays auto.
void set_data_facts_if_found(Settings& settings) {
  config::DataOptions given = settings.given_data();
  given.stage_dir.clear();  // nothing is read but some samples
  try {
    const data::Datasets datasets = data::open_datasets(given);
    settings.learn(&config::Facts::data, facts_of(*datasets.train, given));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::no_input) throw;
  }
  settings.set_model_facts();
}

/// Trains for a moment as a run with these options would, and keeps nothing. Finds what such a run would choose.
void estimate_epoch(Settings& settings, CheckFacts& facts) {
  RunSetup prepared;
  set_up_data(settings, /*measure=*/true, prepared);
  set_up_training(settings, /*resumes=*/false, prepared);
  facts.estimate = measure_epoch(settings.options(), prepared.datasets, prepared.learner, *prepared.task);
  for (const config::Choice& choice : settings.resolution().choices) {
    for (const char* const name : {"batch-size", "num-workers", "amp", "channels-last", "threads"}) {
      if (choice.option == name) facts.chosen.push_back({format("--{} {}", name, choice.value), choice.reason});
    }
  }
}

/// The given options in the form of advice.
std::vector<std::string> given_flags(const config::Table& table) {
  std::vector<std::string> flags;
  for (const config::Row& row : table.rows()) {
    if (row.origin.kind == config::Origin::Kind::built_in || row.is_auto()) continue;
    const std::string text = row.render();
    const bool is_off = row.is_switch && (text == "false" || text == "off");
    flags.push_back(is_off                            ? "--no-" + row.name
                    : row.is_switch && text == "true" ? "--" + row.name
                                                      : "--" + row.name + " " + text);
  }
  return flags;
}

/// Proves the network that the options name, or the usual one, with images as those of the data, which may be missing.
void prove_libraries(Settings settings, bool data_is_sound, CheckFacts& facts) {
  if (data_is_sound) set_data_facts_if_found(settings);
  const config::ResolvedOptions& options = settings.options();
  NetworkUse use =
      benchmark_use(options, {options.data.in_chans, options.data.img_size.height, options.data.img_size.width});
  if (!settings.facts().data) use.training_batches = {kImagesWithoutData};
  use.tries_precisions = tries_precisions(settings);
  facts.network = options.model.model;
  try {
    if (!model::takes_clips(options.model.model)) prove_backend(options, use);
    facts.backend = proof::summary_text(proof::standing());
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::backend) throw;
    facts.backend = error.what();
    facts.missing.push_back("a library that computes correctly");
  }
}

}  // namespace

Outcome check_machine(const Context& context, const CheckFlags& flags) {
  config::Configuration& configuration = context.configuration;
  const config::CommonFlags& common = configuration.flags;
  CheckFacts facts;
  facts.version = STOKER_VERSION;
  facts.libtorch = engine::libtorch_text();
  facts.cuda_build = engine::is_cuda_build();
  facts.machine = machine_with_accelerators();
  Settings settings = settings_or_note(configuration, facts);
  const config::ResolvedOptions& options = settings.options();
  facts.device = options.device.device;
  facts.num_workers = options.loader.num_workers;
  facts.given = given_flags(configuration.table);
  if (common.print_config) {
    set_data_facts_if_found(settings);
    write_result("-", config::render_yaml(configuration, settings.resolution()));
    return {core::kExitOk, ""};
  }
  if (common.names_data) refuse_output_over_input(flags.output, {options.data.data_dir}, {".txt", ".json", ".log"});
  measure_storage(configuration, facts);  // first: data that is not there is reported before anything takes long
  const bool has_bad_files = inspect_data(configuration, flags.all_files, facts);
  read_driver(facts);
  facts.blas = engine::blas_facts();
  facts.threads = engine::probe_threads(options.device.threads, kCheckedThreadSeconds);
  open_and_configure_device(options);
  prove_libraries(settings, /*data_is_sound=*/!has_bad_files && facts.files_error.empty(), facts);
  facts.compute = engine::probe_compute(facts.device, kSecondsPerSpeed);
  const bool has_data = common.names_data && facts.files_error.empty();
  if (facts.missing.empty() && !has_bad_files && (has_data || !common.config_files.empty() || !common.preset.empty())) {
    estimate_epoch(settings, facts);
  }
  write_result(flags.output, flags.json ? core::json_page(check_json(facts)) : core::terminal_text(check_text(facts)));
  if (has_bad_files) return {core::exit_code(ErrorKind::data), "bad-files"};
  if (facts.missing.empty()) return {core::kExitOk, "checked"};
  for (const std::string& missing : facts.missing) core::log_error("missing: {}", missing);
  return {core::exit_code(ErrorKind::unavailable), "missing"};
}

}  // namespace stoker::train
