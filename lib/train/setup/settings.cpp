// SPDX-License-Identifier: Apache-2.0
#include "train/setup/settings.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "config/table/parse_value.h"
#include "engine/device/device.h"
#include "model/model.h"

namespace stoker::train {
namespace {

config::ModelFacts model_facts_of(const config::ResolvedModelOptions& options) {
  const model::DropRates usual = model::usual_drop_rates(options.model);
  return {options.model, usual.drop_rate, usual.drop_path_rate};
}

/// Whether the type of amp comes from a file, or from a word that is copied from commands for GPUs.
bool is_written_for_gpus(const config::Configuration& given) {
  using Kind = config::Origin::Kind;
  const Kind dtype = given.table.row_of(given.options.precision.amp_dtype).origin.kind;
  const std::vector<config::Shorthand>& words = given.table.shorthands();
  return dtype == Kind::file || dtype == Kind::preset ||
         std::any_of(words.begin(), words.end(), [](const config::Shorthand& word) {
           return word.is_written_for_gpus && word.used.kind == Kind::flag;
         });
}

/// Whether who gave the number of epochs did not give the warm-up, and has the last word.
bool epochs_are_written_over_warmup(const config::Configuration& given) {
  using Kind = config::Origin::Kind;
  const config::Origin& epochs = given.table.row_of(given.options.train.epochs).origin;
  const config::Origin& warmup = given.table.row_of(given.options.schedule.warmup_epochs).origin;
  const auto file = [](const config::Origin& origin) { return origin.detail.substr(0, origin.detail.rfind(':')); };
  if (warmup.kind == Kind::built_in || warmup.kind == Kind::flag) return false;
  return epochs.kind > warmup.kind || (epochs.kind == warmup.kind && file(epochs) != file(warmup));
}

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::optional<config::Measured<int64_t>> asked_threads(const std::string& omp_num_threads, int cpus) {
  constexpr int64_t kMaxThreads = 1024;
  int64_t threads = 0;
  if (!config::read_integer(omp_num_threads, 1, kMaxThreads, threads).empty()) return std::nullopt;
  threads = std::min<int64_t>(threads, std::max(cpus, 1));
  return config::Measured<int64_t>{threads, "OMP_NUM_THREADS is " + omp_num_threads, config::ChoiceSource::environment};
}

core::MachineFacts machine_with_accelerators() {
  core::MachineFacts machine = core::read_machine_facts();
  core::Accelerators found = engine::list_accelerators();
  machine.accelerators = std::move(found.devices);
  machine.accelerator_failure = std::move(found.failure);
  machine.accelerator_absence = std::move(found.absence);
  machine.computes_float16 = engine::cpu_computes_float16();
  return machine;
}

Settings::Settings(const config::Configuration& given, core::MachineFacts machine, int64_t ranks)
    : Settings(given, std::move(machine), ranks, /*has_network=*/true) {}

Settings Settings::without_network(const config::Configuration& given) {
  return Settings(given, core::read_machine_facts(), /*ranks=*/1, /*has_network=*/false);
}

Settings::Settings(const config::Configuration& given, core::MachineFacts machine, int64_t ranks, bool has_network)
    : given_(given) {
  facts_.run_name = config::run_name_of(given.flags);
  const auto is_given = [&](const auto& field) {
    return given.table.row_of(field).origin.kind != config::Origin::Kind::built_in;
  };
  facts_.names_model = is_given(given.options.model.model);
  facts_.names_lr_base = is_given(given.options.optim.lr_base);
  facts_.warmup_may_give_way = epochs_are_written_over_warmup(given);
  facts_.half_may_give_way = given.options.device.device.is_auto() && is_written_for_gpus(given);
  facts_.machine = std::move(machine);
  facts_.has_network = has_network;
  const bool is_rank = facts_.machine.local_ranks > 0;  // those who start ranks set the variable to 1, whatever is free
  if (!is_rank) facts_.threads = asked_threads(environment("OMP_NUM_THREADS"), facts_.machine.cpus);
  facts_.ranks = ranks;
  facts_.deals_replicas = given.trains;
  resolve();
}

void Settings::learn_checkpoint(config::CheckpointFacts checkpoint) {
  facts_.checkpoint = checkpoint;
  resolve();
}

void Settings::learn_data(config::DataFacts data) {
  facts_.data = std::move(data);
  resolve();
}

void Settings::learn_network() {
  facts_.model = model_facts_of(options().model);
  resolve();
}

void Settings::learn_amp(config::Measured<bool> amp) {
  facts_.amp = std::move(amp);
  resolve();
}

void Settings::learn_layout(config::Measured<bool> channels_last) {
  facts_.channels_last = std::move(channels_last);
  resolve();
}

void Settings::learn_threads(config::Measured<int64_t> threads) {
  facts_.threads = std::move(threads);
  resolve();
}

void Settings::learn_batch(config::Measured<int64_t> batch_size) {
  facts_.batch_size = std::move(batch_size);
  resolve();
}

void Settings::learn_one_image(bool trains_on_one_image) {
  facts_.trains_on_one_image = trains_on_one_image;
  resolve();
}

void Settings::learn_workers(config::Measured<int64_t> num_workers) {
  facts_.num_workers = std::move(num_workers);
  resolve();
}

void Settings::learn_cache_budget(config::Measured<int64_t> bytes) {
  facts_.cache_budget = std::move(bytes);
  resolve();
}

void Settings::learn_cache(config::Measured<config::CacheTier> cache) {
  facts_.cache = std::move(cache);
  resolve();
}

void Settings::settle(config::DataFacts data) {
  learn_data(std::move(data));
  learn_network();
  facts_.batch_size = config::usual_batch(given_.options, options().train.replicas);
  facts_.trains_on_one_image = false;
  resolve();
}

}  // namespace stoker::train
