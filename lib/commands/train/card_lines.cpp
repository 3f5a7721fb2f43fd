// SPDX-License-Identifier: Apache-2.0
#include "commands/train/card_lines.h"

#include <utility>

#include "core/format.h"
#include "core/system/machine.h"
#include "engine/device/device.h"

namespace stoker::train {

using core::format;

const std::vector<TriedCard>& tried_cards() {
  static const std::vector<TriedCard> cards = {};
  return cards;
}

std::vector<std::string> card_option_lines(const config::ResolvedOptions& options, bool is_fused) {
  const bool pins = options.loader.pin_memory;
  const bool scales = options.precision.amp && options.precision.amp_dtype == config::AmpDtype::float16;
  return {
      pins ? "pinned    memory on: batches are decoded into it" : "pinned    memory off (--pin-memory)",
      format("prefetch  {} batches decoded ahead{}", options.loader.prefetch_factor,
             pins ? ", the next one copied ahead of its use" : ""),
      pins ? "copies    non-blocking, on a stream of their own" : "copies    blocking: memory is not pinned",
      options.precision.tf32 ? "TF32      on: products in float32 round their inputs to 10 bits"
                             : "TF32      off (--tf32)",
      options.precision.channels_last ? "layout    channels-last" : "layout    channels-first (--channels-last)",
      is_fused ? "optimizer fused: one kernel for all parameters" : "optimizer foreach kernels: there is no fused one",
      scales ? format("scaler    GradScaler from {}, doubled after {} updates without overflow",
                      core::count_text(static_cast<int64_t>(options.precision.init_scale)),
                      core::count_text(options.precision.scale_growth_interval))
             : "scaler    no GradScaler: only float16 needs one"};
}

std::vector<std::string> untried_lines(const std::string& compute_capability) {
  if (compute_capability.empty()) return {};
  for (const TriedCard& card : tried_cards()) {
    if (compute_capability == card.compute_capability) return {};
  }
  return {format("untried   compute capability {}: no run on such a card yet", compute_capability),
          "          off unless requested: --graphs on, --feed resident"};
}

observe::DriverFacts driver_and_libraries(const observe::Nvml& nvml) {
  observe::DriverFacts driver = observe::driver_facts(nvml);
  const engine::CudaLibraries libraries = engine::cuda_libraries();
  driver.cuda_runtime = libraries.runtime;
  driver.cudnn = libraries.cudnn;
  return driver;
}

std::vector<std::string> hardware_screen(const std::vector<std::string>& names, std::vector<std::string>& warnings) {
  constexpr size_t kColumns = 80;
  const observe::Nvml nvml;
  const observe::HostFacts host = observe::read_host_facts();
  std::vector<std::string> lines = {"driver    " + observe::driver_text(driver_and_libraries(nvml))};
  const auto add = [](const std::vector<std::string>& more, std::vector<std::string>& to) {
    to.insert(to.end(), more.begin(), more.end());
  };
  add(observe::hardware_lines("host", observe::host_facts(host), kColumns), lines);
  add(observe::host_warnings(host), warnings);
  if (auto found = nvml.card(names)) {
    const observe::PlacedCard card = observe::placed(std::move(*found));
    add(observe::hardware_lines("card", observe::card_facts(card.facts, card.node), kColumns), lines);
    add(observe::card_warnings(card.facts, card.node, core::allowed_cpus(), card.cpus_of_node), warnings);
  }
  return lines;
}

}  // namespace stoker::train
