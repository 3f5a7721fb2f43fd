// SPDX-License-Identifier: Apache-2.0
#include "train/setup/settings.h"

#include <utility>

#include "deploy/inference/inference.h"
#include "engine/device/device.h"

namespace stoker::train {

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
    : given_(given), facts_(deploy::first_facts(given, std::move(machine))) {
  facts_.has_network = has_network;
  facts_.ranks = ranks;
  resolve();
}

void Settings::set_model_facts() { learn(&config::Facts::model, deploy::usual_rates_of(options().model)); }

void Settings::settle(config::DataFacts data) { resolution_ = deploy::settle(given_.options, facts_, std::move(data)); }

}  // namespace stoker::train
