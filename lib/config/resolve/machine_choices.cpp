// SPDX-License-Identifier: Apache-2.0
// What the machine decides.
#include <algorithm>
#include <string>
#include <vector>

#include "config/resolve/choices.h"
#include "config/table/parse_value.h"
#include "core/error.h"
#include "core/format.h"

namespace stoker::config {
namespace {

[[noreturn]] void throw_unavailable(const std::string& message) {
  throw core::Error(core::ErrorKind::unavailable, message, "run on another machine, or use --device cpu");
}

/// Leaves `cpu` or `cuda:N`, and N < the number of accelerators.
void choose_device(Configuration& configuration, const core::MachineFacts& machine) {
  std::string& device = configuration.options.device.device;
  const size_t count = machine.accelerators.size();
  if (device == "auto") {
    const bool has_cuda = count > 0;
    choose(
        configuration, configuration.options.device.device, has_cuda ? "cuda:0" : "cpu",
        has_cuda ? "first of " + std::to_string(count) + ", " + machine.accelerators[0].name : "no CUDA device found");
    return;
  }
  if (device == "cpu") return;
  if (count == 0) throw_unavailable("device " + device + " was asked for, but no CUDA device is available");
  if (device == "cuda") device = "cuda:0";
  int64_t index = 0;
  read_integer(device.substr(5), 0, 63, index);
  if (static_cast<size_t>(index) < count) return;
  throw_unavailable(core::format("device {} was asked for, but there {} {} CUDA device{}", device,
                                 count == 1 ? "is" : "are", count, count == 1 ? "" : "s"));
}

size_t cuda_index(const std::string& device) {
  int64_t index = 0;
  read_integer(device.substr(5), 0, 63, index);
  return static_cast<size_t>(index);
}

void choose_threads(Configuration& configuration, const core::MachineFacts& machine) {
  const int64_t cpus = std::max(machine.cpus, 1);
  const std::string count = core::format("{} CPU{}", cpus, cpus == 1 ? "" : "s");
  const std::string source = machine.cpus_reason.empty() ? count : count + " (" + machine.cpus_reason + ")";
  choose(configuration, configuration.options.device.threads, std::to_string(std::min<int64_t>(cpus, 1024)), source);
  if (configuration.options.device.device == "cpu") {
    choose(configuration, configuration.options.loader.num_workers, std::to_string(std::min<int64_t>(cpus, 4)),
           "at most 4 of " + source + ", which decoding shares with the network");
  } else {
    choose(configuration, configuration.options.loader.num_workers,
           std::to_string(std::clamp<int64_t>(cpus - 1, 1, 1024)),
           "one less than " + source + ", the training thread keeps one");
  }
}

void choose_precision(Configuration& configuration, const core::MachineFacts& machine) {
  const bool amp = configuration.options.precision.amp;
  const std::string& device = configuration.options.device.device;
  if (device == "cpu") {
    choose(configuration, configuration.options.precision.amp_dtype, "bfloat16", "the CPU computes no float16");
    choose(configuration, configuration.options.precision.channels_last, "true", "faster on the CPU");
    return;
  }
  const core::AcceleratorFacts& accelerator = machine.accelerators[cuda_index(device)];
  const bool native = accelerator.native_bfloat16;
  choose(configuration, configuration.options.precision.amp_dtype, native ? "bfloat16" : "float16",
         accelerator.name + (native ? " computes bfloat16 natively" : " does not compute bfloat16 natively"));
  choose(configuration, configuration.options.precision.channels_last, amp ? "true" : "false",
         amp ? "faster with amp" : "amp is off");
}

}  // namespace

void choose_for_machine(Configuration& configuration, const core::MachineFacts& machine) {
  choose_device(configuration, machine);
  choose_threads(configuration, machine);
  choose_precision(configuration, machine);
}

}  // namespace stoker::config
