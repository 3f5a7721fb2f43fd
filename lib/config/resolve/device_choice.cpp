// SPDX-License-Identifier: Apache-2.0
// On which device a process computes: alone, or as one of several on its machine, each of which gets a GPU of its own.
#include <algorithm>
#include <string>

#include "config/resolution.h"
#include "config/table/parse_value.h"
#include "core/error.h"
#include "core/format.h"

namespace stoker::config {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;

constexpr const char* kOtherMachine = "run on another machine, or use --device cpu";

std::string list_of(const Devices& devices) {
  std::string text;
  for (const int64_t gpu : devices.gpus) text += (text.empty() ? "" : ",") + std::to_string(gpu);
  return text;
}

std::string there_are(int64_t gpus) {
  return format("there {} {} CUDA device{}", gpus == 1 ? "is" : "are", gpus, gpus == 1 ? "" : "s");
}

void refuse_list_on_cpu(const Devices& devices, const std::string& why) {
  if (devices.gpus.empty()) return;
  throw Error(ErrorKind::config, format("devices {} are numbers of GPUs, but {}", list_of(devices), why),
              format("on a CPU --devices is a number of processes: --devices {} starts as many as the list names",
                     devices.count));
}

[[noreturn]] void refuse_missing(int64_t index, const std::string& how, int64_t gpus) {
  throw Error(ErrorKind::unavailable, format("device cuda:{} was asked for{}, but {}", index, how, there_are(gpus)),
              kOtherMachine);
}

/// The numbers of the GPUs of the processes of this machine, as far as one of them can detect.
struct GpusOfProcesses {
  int64_t processes = 1;
  int64_t first = 0, own = 0;
};

GpusOfProcesses gpus_of_processes(const Devices& devices, const core::MachineFacts& machine) {
  const auto gpus = static_cast<int64_t>(machine.accelerators.size());
  const bool is_rank = machine.local_ranks > 0;
  GpusOfProcesses of{is_rank ? machine.local_ranks : devices.count, 0, machine.local_rank};
  if (!devices.gpus.empty()) {
    if (machine.local_rank >= devices.count) {
      throw Error(
          ErrorKind::config,
          format("devices {} names no GPU for process {} of this machine", list_of(devices), machine.local_rank),
          "name as many GPUs as there are processes on each machine");
    }
    for (const int64_t gpu : devices.gpus) {
      if (gpu >= gpus) refuse_missing(gpu, " by devices " + list_of(devices), gpus);
    }
    of.first = devices.gpus.front();
    of.own = devices.gpus[static_cast<size_t>(machine.local_rank)];
    return of;
  }
  if (is_rank && gpus == 1) {  // a starter lets each process see one GPU only: srun --gpus-per-task 1
    of.own = 0;
    return of;
  }
  if (of.processes > gpus || of.own >= gpus) {
    throw Error(
        ErrorKind::unavailable,
        format("{} processes were asked for, each with a GPU of its own, but {}", of.processes, there_are(gpus)),
        gpus == 1 ? "--devices 1, or --device cpu: processes that share the CPUs"
                  : format("--devices {}, or --device cpu: processes that share the CPUs", gpus));
  }
  return of;
}

int64_t index_of(const std::string& device) {
  int64_t index = 0;
  read_integer(device.substr(5), 0, 63, index);
  return index;
}

}  // namespace

DeviceChoice choose_device(const DeviceOptions& given, const core::MachineFacts& machine) {
  const auto gpus = static_cast<int64_t>(machine.accelerators.size());
  const std::string& problem = machine.accelerator_failure;
  const Devices& devices = given.devices;
  const bool is_auto = given.device.is_auto();
  const std::string asked = is_auto ? "cuda" : given.device.value();
  if (asked == "cpu") {
    refuse_list_on_cpu(devices, "device is cpu");
    return {"cpu", ""};
  }
  // Days on the CPU are no answer to a driver that does not work.
  if (is_auto && gpus == 0 && !problem.empty()) {
    throw Error(ErrorKind::unavailable, "the CUDA driver is there, but no device can be used: " + problem,
                "repair it (nvidia-smi shows more), or use --device cpu");
  }
  if (is_auto && gpus == 0) {
    refuse_list_on_cpu(devices, "no CUDA device was found");
    return {"cpu", "no CUDA device found"};
  }
  if (gpus == 0) {
    const std::string& why = problem.empty() ? machine.accelerator_absence : problem;
    throw Error(
        ErrorKind::unavailable,
        format("device {} was asked for, but no CUDA device is available{}{}", asked, why.empty() ? "" : ": ", why),
        kOtherMachine);
  }
  const bool names_one = asked != "cuda";
  const bool is_alone = devices.gpus.empty() && std::max<int64_t>(machine.local_ranks, devices.count) == 1;
  if (names_one && is_alone) {
    if (index_of(asked) >= gpus) refuse_missing(index_of(asked), "", gpus);
    return {asked, ""};
  }
  const GpusOfProcesses of = gpus_of_processes(devices, machine);
  // The device of the first process stands for all: the options of rank 0 reach the others in this way.
  if (names_one && index_of(asked) != of.first && index_of(asked) != of.own) {
    throw Error(ErrorKind::config,
                format("device {} is one device, but there are {} processes on this machine", asked, of.processes),
                "leave out device, and name the GPUs with --devices, as in --devices 0,2");
  }
  const std::string name = format("cuda:{}", of.own);
  const std::string& card = machine.accelerators[static_cast<size_t>(of.own)].name;
  if (is_alone) return {name, format("first of {}, {}", gpus, card)};
  return {name, format("of process {} of {}, {}", machine.local_rank, of.processes, card)};
}

}  // namespace stoker::config
