// SPDX-License-Identifier: Apache-2.0
// Choices that depend on the machine.
#include <algorithm>
#include <string>
#include <vector>

#include "config/resolution.h"
#include "config/resolve/draft.h"
#include "config/table/parse_value.h"
#include "core/error.h"
#include "core/format.h"

namespace stoker::config {
namespace {

/// Leaves `cpu` or `cuda:N`, and N < the number of accelerators.
void settle_device(Draft& draft, const core::MachineFacts& machine) {
  Auto<std::string>& option = draft.options().device.device;
  const DeviceChoice choice = choose_device(draft.options().device, machine);
  if (option.is_auto())
    draft.choose(option, choice.name, choice.reason);
  else
    option = choice.name;
}

size_t cuda_index(const std::string& device) {
  int64_t index = 0;
  read_integer(device.substr(5), 0, 63, index);
  return static_cast<size_t>(index);
}

/// "2 CPUs (by affinity)"
std::string cpus_text(const core::MachineFacts& machine, int64_t cpus) {
  const std::string count = core::format("{} CPU{}", cpus, cpus == 1 ? "" : "s");
  return machine.cpus_reason.empty() ? count : count + " (" + machine.cpus_reason + ")";
}

/// One for each process that trains, in the run's first start.
void choose_replicas(Draft& draft, const Facts& facts) {
  Auto<int64_t>& option = draft.options().train.replicas;
  const int64_t ranks = ranks_of(draft.options().device.devices, facts);
  const int64_t kept = facts.checkpoint ? facts.checkpoint->replicas.value_or(ranks) : ranks;
  if (kept != ranks) draft.choose(option, std::to_string(kept), kAsInCheckpoint, ChoiceSource::checkpoint);
  if (ranks > 1) draft.choose(option, std::to_string(ranks), core::format("one for each of {} processes", ranks));
  draft.set_default(option, int64_t{1});
}

/// CPU results depend on the number of threads: that of a run that continues follows its checkpoint.
void choose_threads(Draft& draft, const Facts& facts) {
  const int64_t cpus = std::max(facts.machine.cpus, 1), threads = std::min<int64_t>(cpus, 1024);
  const Auto<int64_t>& option = draft.options().device.threads;
  if (facts.checkpoint && facts.checkpoint->threads.value_or(threads) != threads) {
    draft.choose(option, std::to_string(*facts.checkpoint->threads),
                 core::format("{}, so that the bits stay the same", kAsInCheckpoint), ChoiceSource::checkpoint);
  }
  if (draft.options().train.replicas.value() > 1 && draft.options().device.device.value() == "cpu") {
    draft.choose(option, "1", "one per replica: bits do not depend on the machine");
  }
  if (facts.threads) draft.choose(option, std::to_string(facts.threads->value), *facts.threads);
  draft.choose(option, std::to_string(threads), cpus_text(facts.machine, cpus));
}

void choose_workers(Draft& draft, const Facts& facts) {
  const Auto<int64_t>& option = draft.options().loader.num_workers;
  if (facts.num_workers) draft.choose(option, std::to_string(facts.num_workers->value), *facts.num_workers);
  const int64_t cpus = std::max(facts.machine.cpus, 1);
  const std::string source = cpus_text(facts.machine, cpus);
  if (!facts.has_network) {
    draft.choose(option, std::to_string(std::min<int64_t>(cpus, 1024)), source + ", which no network needs");
  }
  if (draft.options().device.device.value() == "cpu") {
    draft.choose(option, std::to_string(std::min<int64_t>(cpus, 4)),
                 "at most 4 of " + source + ", which decoding shares with the network");
  } else {
    draft.choose(option, std::to_string(std::clamp<int64_t>(cpus - 1, 1, 1024)),
                 "one less than " + source + ", the training thread keeps one");
  }
}

void choose_amp(Draft& draft, const char* amp, const std::string& reason) {
  draft.choose(draft.options().precision.amp, amp, reason);
}

/// Not every network is faster in bfloat16 where a CPU computes it: it is measured, except for runs that must come out
/// alike each time. Returns whether Facts::amp decides and is not known.
bool choose_amp_on_cpu(Draft& draft, const Facts& facts) {
  const PrecisionOptions& o = draft.options().precision;
  if (!facts.machine.native_bfloat16) choose_amp(draft, "off", "this CPU does not compute bfloat16 natively");
  if (draft.options().train.deterministic) choose_amp(draft, "off", "deterministic: speed is not tried");
  if (facts.amp) draft.choose(o.amp, facts.amp->value ? "bfloat16" : "off", *facts.amp);
  if (!o.amp.is_auto()) return false;
  draft.assume(true);
  choose_amp(draft, "off", "the network was not measured");
  draft.assume(false);
  return true;
}

/// A file with 16-mixed was written for a GPU: on a CPU its precision is automatic. Returns why; empty: it stays.
std::string give_way(Draft& draft, const Facts& facts) {
  PrecisionOptions& o = draft.options().precision;
  if (!facts.half_may_give_way || o.amp_dtype.is_auto() || o.amp_dtype.value() != AmpDtype::float16) return "";
  o.amp = {};
  o.amp_dtype = {};
  return facts.machine.computes_float16 ? "float16, which the configuration sets for a GPU, is slow on the CPU"
                                        : "the CPU computes no float16, which the configuration sets for a GPU";
}

/// The measured layout, if there is one; else channels last.
void choose_layout(Draft& draft, const Facts& facts) {
  const Auto<bool>& option = draft.options().precision.channels_last;
  if (facts.channels_last) draft.choose(option, switch_text(facts.channels_last->value), *facts.channels_last);
  draft.choose(option, "true", "usual on a CPU");
}

/// Returns as choose_amp_on_cpu(). A run that is resumed keeps the precision that it began with.
bool choose_precision(Draft& draft, const Facts& facts) {
  PrecisionOptions& o = draft.options().precision;
  const std::string& device = draft.options().device.device.value();
  const std::string gave_way = device == "cpu" ? give_way(draft, facts) : "";
  if (facts.checkpoint) {
    if (o.amp.is_auto() && facts.checkpoint->amp_dtype) o.amp_dtype = *facts.checkpoint->amp_dtype;
    draft.keep(o.amp, facts.checkpoint->amp);
    draft.keep(o.channels_last, facts.checkpoint->channels_last);
    draft.keep(o.tf32, facts.checkpoint->tf32);
  }
  if (device == "cpu") {
    draft.set_default(o.tf32, false);
    choose_layout(draft, facts);
    const bool waits = choose_amp_on_cpu(draft, facts);
    if (o.amp.value() && o.amp_dtype.is_auto()) draft.replace(o.amp, "bfloat16", "what CPUs compute natively");
    if (!gave_way.empty()) {
      draft.replace(o.amp, o.amp.value() ? "bfloat16" : "off", gave_way, ChoiceSource::configuration);
    }
    return waits;
  }
  const core::AcceleratorFacts& accelerator = facts.machine.accelerators[cuda_index(device)];
  const bool native = accelerator.native_bfloat16;
  const std::string reason =
      accelerator.name + (native ? " computes bfloat16 natively" : " does not compute bfloat16 natively");
  choose_amp(draft, native ? "bfloat16" : "off", reason);
  if (o.amp.value() && o.amp_dtype.is_auto()) draft.replace(o.amp, native ? "bfloat16" : "float16", reason);
  draft.choose(o.tf32, switch_text(native), accelerator.name + (native ? " computes TF32" : " does not compute TF32"));
  const bool amp = o.amp.value(), tensor_cores = amp || o.tf32.value();
  draft.choose(o.channels_last, switch_text(tensor_cores),
               amp            ? "faster with amp"
               : tensor_cores ? "faster with tf32"
                              : "amp and tf32 are off");
  return false;
}

}  // namespace

bool choose_for_machine(const Facts& facts, Draft& draft) {
  if (!facts.has_network) draft.options().device = {};
  settle_device(draft, facts.machine);
  choose_replicas(draft, facts);
  choose_threads(draft, facts);
  choose_workers(draft, facts);
  return choose_precision(draft, facts);
}

// On which device a process computes: alone, or as one of several on its machine, each of which gets a GPU of its own.

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
  throw Error(ErrorKind::unavailable, format("device cuda:{} was requested{}, but {}", index, how, there_are(gpus)),
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
        format("{} processes were requested, each with a GPU of its own, but {}", of.processes, there_are(gpus)),
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
  const std::string requested = is_auto ? "cuda" : given.device.value();
  if (requested == "cpu") {
    refuse_list_on_cpu(devices, "device is cpu");
    return {"cpu", ""};
  }
  // Days on the CPU are not an answer to a driver that does not work.
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
        format("device {} was requested, but no CUDA device is available{}{}", requested, why.empty() ? "" : ": ", why),
        kOtherMachine);
  }
  const bool names_one = requested != "cuda";
  const bool is_alone = devices.gpus.empty() && std::max<int64_t>(machine.local_ranks, devices.count) == 1;
  if (names_one && is_alone) {
    if (index_of(requested) >= gpus) refuse_missing(index_of(requested), "", gpus);
    return {requested, ""};
  }
  const GpusOfProcesses of = gpus_of_processes(devices, machine);
  // The device of the first process stands for all: the options of rank 0 reach the others in this way.
  if (names_one && index_of(requested) != of.first && index_of(requested) != of.own) {
    throw Error(ErrorKind::config,
                format("device {} is one device, but there are {} processes on this machine", requested, of.processes),
                "leave out device, and name the GPUs with --devices, as in --devices 0,2");
  }
  const std::string name = format("cuda:{}", of.own);
  const std::string& card = machine.accelerators[static_cast<size_t>(of.own)].name;
  if (is_alone) return {name, format("first of {}, {}", gpus, card)};
  return {name, format("of process {} of {}, {}", machine.local_rank, of.processes, card)};
}

}  // namespace stoker::config
