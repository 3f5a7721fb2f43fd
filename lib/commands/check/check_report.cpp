// SPDX-License-Identifier: Apache-2.0
#include "commands/check/check_report.h"

#include <algorithm>
#include <cstdlib>

#include "core/format.h"
#include "core/system/machine.h"

namespace stoker::train {
namespace {

using core::format;

// Handing work to threads takes microseconds where each has a core to itself. With a neighbour on a core the waiting
// threads spin until the kernel takes the core away: milliseconds, thousands of times per update.
constexpr double kSlowHandoverSeconds = 500e-6;
constexpr double kLeastSpeedup = 1.15;  // of all threads over one: below that they are not worth their noise
constexpr double kWorthSwitching = 1.15;
constexpr double kBytesPerImage = 100e6;  // ResNet-50 training at 224 px: activations and their gradients, with amp

double speed_of(const CheckFacts& facts, const std::string& operation, const std::string& dtype, bool channels_last) {
  for (const engine::ComputeSpeed& speed : facts.compute) {
    const bool same_layout = operation == "matmul" || speed.channels_last == channels_last;
    if (speed.operation == operation && speed.dtype == dtype && same_layout) return speed.gflops_per_second;
  }
  return 0;
}

double best_layout(const CheckFacts& facts, const std::string& dtype) {
  return std::max(speed_of(facts, "convolution", dtype, false), speed_of(facts, "convolution", dtype, true));
}

bool threads_get_in_each_others_way(const CheckFacts& facts) {
  return facts.threads.threads > 1 &&
         (facts.threads.worst_handover_seconds > kSlowHandoverSeconds || facts.threads.speedup < kLeastSpeedup);
}

bool on_cpu(const CheckFacts& facts) { return facts.device == "cpu"; }

/// The one that was chosen; nothing where it is missing.
core::AcceleratorFacts accelerator_of(const CheckFacts& facts) {
  const size_t colon = facts.device.find(':');
  const size_t index = colon == std::string::npos ? 0 : std::strtoul(facts.device.c_str() + colon + 1, nullptr, 10);
  return index < facts.machine.accelerators.size() ? facts.machine.accelerators[index] : core::AcceleratorFacts{};
}

Advice precision_advice(const CheckFacts& facts) {
  const double plain = best_layout(facts, "float32");
  const double bfloat16 = best_layout(facts, "bfloat16");
  const double float16 = on_cpu(facts) ? 0 : best_layout(facts, "float16");  // needs loss scaling, which CPUs lack
  const bool native = on_cpu(facts) ? facts.machine.native_bfloat16 : accelerator_of(facts).native_bfloat16;
  if (native && bfloat16 > kWorthSwitching * plain) {
    return {"--amp bfloat16", format("convolutions run at {:.1f} times the speed of float32", bfloat16 / plain)};
  }
  if (float16 > kWorthSwitching * plain) {
    return {"--amp float16", format("convolutions run at {:.1f} times the speed of float32", float16 / plain)};
  }
  return {"--no-amp", plain > 0 ? format("bfloat16 reaches {:.1f} times the speed of float32", bfloat16 / plain)
                                : "nothing could be measured"};
}

Advice layout_advice(const CheckFacts& facts, const std::string& dtype) {
  const double first = speed_of(facts, "convolution", dtype, false), last = speed_of(facts, "convolution", dtype, true);
  return {last >= first ? "--channels-last" : "--no-channels-last",
          format("{} convolutions: {:.0f} GFLOP/s channels-last, {:.0f} channels-first", dtype, last, first)};
}

Advice batch_advice(const CheckFacts& facts) {
  if (on_cpu(facts)) return {"--batch-size 64", "a CPU gains little above 32 to 128 images"};
  const auto bytes = static_cast<double>(accelerator_of(facts).memory_bytes);
  const auto images = static_cast<int64_t>(0.8 * bytes / kBytesPerImage) / 32 * 32;
  return {format("--batch-size {}", std::max<int64_t>(32, images)),
          format("{} of device memory and about 100 MB per image, as for ResNet-50 at 224 pixels with amp",
                 core::bytes_text(bytes))};
}

std::string simd_text(const core::MachineFacts& machine) {
  return std::string(machine.avx512 ? "AVX-512"
                     : machine.avx2 ? "AVX2"
                                    : "no AVX2") +
         (machine.native_bfloat16 ? ", bfloat16 native" : ", bfloat16 emulated");
}

std::string speed_text(double gflops) { return gflops > 0 ? format("{:.0f}", gflops) : "n/a"; }

std::string device_lines(const CheckFacts& facts) {
  std::string text;
  for (size_t i = 0; i < facts.machine.accelerators.size(); ++i) {
    const core::AcceleratorFacts& device = facts.machine.accelerators[i];
    text += format("device    cuda:{} {}, compute capability {}, {}, bfloat16 {}\n", i, device.name,
                   device.compute_capability.empty() ? "n/a" : device.compute_capability,
                   core::bytes_text(static_cast<double>(device.memory_bytes)),
                   device.native_bfloat16 ? "native" : "emulated");
  }
  if (text.empty()) text = "device    cpu; no CUDA device that LibTorch could use\n";
  text += format("driver    {}\n", observe::driver_text(facts.driver));
  if (facts.driver.failure.empty() && facts.cards.empty()) text += "card      the driver has no device\n";
  for (const observe::PlacedCard& card : facts.cards) {
    text += format("card      {}\n", card.facts.name);
    for (const std::string& line : observe::hardware_lines("", observe::card_facts(card.facts, card.node))) {
      text += line + "\n";
    }
  }
  return text;
}

std::string storage_line(const CheckFacts& facts) {
  if (!facts.storage) return format("storage   n/a ({})\n", facts.storage_error);
  const data::StorageSpeed& storage = *facts.storage;
  const std::string from =
      storage.dropped ? "storage" : "memory (the page cache was not dropped: storage was not measured)";
  return format(
      "storage   {}: {} of {}{} files, {}; {:.0f}% were in the page cache\n"
      "          from {}: {:.2f} ms to the first page (95%: {:.2f} ms), {}/s; again from memory: {}/s\n",
      core::printable(facts.data_dir), storage.files_read,
      storage.files_seen == data::kMaxFilesSeen ? "more than " : "", core::count_text(storage.files_seen),
      core::bytes_text(static_cast<double>(storage.bytes_read)), 100 * storage.cached_share, from,
      1e3 * storage.open_seconds, 1e3 * storage.slow_open_seconds, core::bytes_text(storage.bytes_per_second),
      core::bytes_text(storage.cached_bytes_per_second));
}

std::string estimate_line(const plan::EpochEstimate& estimate) {
  return format(
      "estimate  {} per epoch of {} images, {} for {} epochs, validation not counted: {:.0f} images/s over {} "
      "updates, data wait {:.0f}%\n",
      core::duration_text(estimate.epoch_seconds), core::count_text(estimate.train_images),
      core::duration_text(estimate.epoch_seconds * static_cast<double>(estimate.epochs)), estimate.epochs,
      estimate.images_per_second, estimate.updates_measured, 100 * estimate.data_wait_share);
}

}  // namespace

std::vector<Advice> advice_from(const CheckFacts& facts) {
  if (!facts.chosen.empty()) return facts.chosen;
  std::vector<Advice> advice;
  const Advice precision = precision_advice(facts);
  advice.push_back(batch_advice(facts));
  advice.push_back({format("--num-workers {}", facts.num_workers), facts.machine.cpus_reason});
  advice.push_back(precision);
  const bool amp = precision.flag.rfind("--amp ", 0) == 0;
  advice.push_back(layout_advice(facts, amp ? precision.flag.substr(precision.flag.rfind(' ') + 1) : "float32"));
  const engine::ThreadSpeed& threads = facts.threads;
  if (threads_get_in_each_others_way(facts)) {
    advice.push_back({"--threads 1",
                      format("{} threads compute at {:.2f} times the speed of one", threads.threads, threads.speedup)});
  } else if (threads.threads > 1) {
    advice.push_back(
        {format("--threads {}", threads.threads), format("{:.1f} times the speed of one thread", threads.speedup)});
  }
  const auto is_given = [&](const Advice& one) {
    return std::find(facts.given.begin(), facts.given.end(), one.flag) != facts.given.end();
  };
  advice.erase(std::remove_if(advice.begin(), advice.end(), is_given), advice.end());
  return advice;
}

std::vector<std::string> warnings_from(const CheckFacts& facts) {
  std::vector<std::string> warnings;
  if (facts.blas.reference) {
    warnings.push_back(
        "the reference BLAS is in use, many times slower than OpenBLAS: "
        "apt install libopenblas0-openmp");
  }
  if (threads_get_in_each_others_way(facts)) {
    warnings.push_back(format(
        "{} threads compute at {:.2f} times the speed of one, and share out a short operation in {:.3f} ms (95%: "
        "{:.3f} "
        "ms): another process computes on these CPUs, or they share a core. Use --threads 1, or give this process CPUs "
        "of its own (taskset, cpuset)",
        facts.threads.threads, facts.threads.speedup, 1e3 * facts.threads.handover_seconds,
        1e3 * facts.threads.worst_handover_seconds));
  }
  for (std::string& warning : observe::host_warnings(facts.host)) warnings.push_back(std::move(warning));
  for (const observe::PlacedCard& card : facts.cards) {
    for (const std::string& warning :
         observe::card_warnings(card.facts, card.node, core::allowed_cpus(), card.cpus_of_node)) {
      warnings.push_back(format("{}: {}", card.facts.name, warning));
    }
  }
  if (!facts.driver.devices.empty() && facts.machine.accelerators.empty()) {
    warnings.push_back(format("the driver sees {}, but {}", core::list_text(facts.driver.devices),
                              facts.cuda_build ? "LibTorch cannot use it: its CUDA may be newer than the driver"
                                               : "this LibTorch is a CPU build: build against one with CUDA"));
  }
  if (facts.storage && facts.storage->dropped && facts.storage->slow_open_seconds > 5e-3) {
    warnings.push_back(
        "files open slowly: with many small files let more workers wait at once, or copy the data to a "
        "local disk");
  }
  return warnings;
}

std::string check_text(const CheckFacts& facts) {
  const core::MachineFacts& machine = facts.machine;
  std::string text = format("stoker train {}, {}\n", facts.version, facts.libtorch);
  text += format("CPUs      {} ({}), {}, {}\n", machine.cpus, machine.cpus_reason,
                 machine.cpu_model.empty() ? "model n/a" : core::printable(machine.cpu_model), simd_text(machine));
  for (const std::string& line : observe::hardware_lines("host", observe::host_facts(facts.host))) text += line + "\n";
  text += format("memory    {}, {} available\n", core::bytes_text(static_cast<double>(machine.ram_bytes)),
                 core::bytes_text(static_cast<double>(machine.ram_available_bytes)));
  text += device_lines(facts);
  text += format("BLAS      {}{}; convolutions on the CPU by {}\n", facts.blas.name,
                 facts.blas.path.empty() ? "" : " (" + core::printable(facts.blas.path) + ")",
                 facts.blas.onednn ? "oneDNN" : "the BLAS");
  text += format("backend   {}: {}\n", facts.network, facts.backend);
  for (const std::string dtype : {"float32", "bfloat16", "float16"}) {
    text += format("speed     {:<9} GFLOP/s on {}: matmul {}, convolution {} channels-first, {} channels-last\n", dtype,
                   facts.device, speed_text(speed_of(facts, "matmul", dtype, false)),
                   speed_text(speed_of(facts, "convolution", dtype, false)),
                   speed_text(speed_of(facts, "convolution", dtype, true)));
  }
  text +=
      facts.threads.threads < 2
          ? "threads   1\n"
          : format("threads   {}: {:.2f} times the speed of one; a short operation takes {:.3f} ms (95%: {:.3f} ms)\n",
                   facts.threads.threads, facts.threads.speedup, 1e3 * facts.threads.handover_seconds,
                   1e3 * facts.threads.worst_handover_seconds);
  text += storage_line(facts);
  for (const auto& [what, check] : facts.files) text += format("files     {}\n", data::file_check_text(check, what));
  if (!facts.files_error.empty()) text += format("files     not looked at: {}\n", facts.files_error);
  if (facts.estimate) text += estimate_line(*facts.estimate);
  const char* const heading = facts.chosen.empty() ? "try" : "chosen";  // for networks in general, or for this one
  for (const Advice& advice : advice_from(facts)) {
    text += format("{:<10}{}: {}\n", heading, advice.flag, advice.reason);
  }
  for (const std::string& warning : warnings_from(facts)) text += "warning   " + warning + "\n";
  for (const auto& split : facts.files) {
    for (const std::string& line : split.second.first_bad) text += "bad       " + line + "\n";
  }
  for (const std::string& missing : facts.missing) text += "missing   " + missing + "\n";
  return text;
}

core::Json check_json(const CheckFacts& facts) {
  using core::Json;
  const core::MachineFacts& machine = facts.machine;
  const auto text_or_null = [](const std::string& text) {
    return text.empty() ? Json(nullptr) : Json(core::printable(text));
  };
  Json json = {{"version", facts.version},
               {"libtorch", facts.libtorch},
               {"cpus", machine.cpus},
               {"cpus_reason", machine.cpus_reason},
               {"cpu_model", text_or_null(machine.cpu_model)},
               {"simd", machine.avx512 ? "avx512"
                        : machine.avx2 ? "avx2"
                                       : "none"},
               {"native_bfloat16", machine.native_bfloat16},
               {"ram_bytes", machine.ram_bytes},
               {"ram_available_bytes", machine.ram_available_bytes},
               {"device", facts.device},
               {"driver", text_or_null(facts.driver.version)},
               {"driver_devices", facts.driver.devices},
               {"driver_cuda", text_or_null(facts.driver.cuda)},
               {"cuda_runtime", text_or_null(facts.driver.cuda_runtime)},
               {"cudnn", text_or_null(facts.driver.cudnn)},
               {"blas",
                {{"name", facts.blas.name},
                 {"path", text_or_null(facts.blas.path)},
                 {"reference", facts.blas.reference},
                 {"onednn", facts.blas.onednn}}},
               {"backend", {{"network", facts.network}, {"proof", facts.backend}}},
               {"threads",
                {{"count", facts.threads.threads},
                 {"speedup", facts.threads.speedup},
                 {"handover_seconds", facts.threads.handover_seconds},
                 {"worst_handover_seconds", facts.threads.worst_handover_seconds}}}};
  json["accelerators"] = Json::array();
  for (const core::AcceleratorFacts& device : machine.accelerators) {
    json["accelerators"].push_back({{"name", device.name},
                                    {"compute_capability", text_or_null(device.compute_capability)},
                                    {"memory_bytes", device.memory_bytes},
                                    {"native_bfloat16", device.native_bfloat16}});
  }
  json["host"] = observe::hardware_json(observe::host_facts(facts.host));
  json["cards"] = Json::array();
  for (const observe::PlacedCard& card : facts.cards) {
    Json fields = observe::hardware_json(observe::card_facts(card.facts, card.node));
    fields["name"] = card.facts.name;
    json["cards"].push_back(fields);
  }
  json["speed"] = Json::array();
  for (const engine::ComputeSpeed& speed : facts.compute) {
    json["speed"].push_back(
        {{"operation", speed.operation},
         {"dtype", speed.dtype},
         {"channels_last", speed.channels_last},
         {"gflops_per_second", speed.gflops_per_second > 0 ? Json(speed.gflops_per_second) : Json(nullptr)}});
  }
  json["files"] = Json::array();
  for (const auto& [what, check] : facts.files) {
    Json bad = Json::array();
    for (const std::string& line : check.first_bad) bad.push_back(core::printable(line));
    json["files"].push_back({{"of", what},
                             {"samples", check.samples},
                             {"looked_at", check.looked_at},
                             {"bad", check.bad},
                             {"first_bad", bad}});
  }
  json["storage"] = nullptr;
  if (facts.storage) {
    const data::StorageSpeed& storage = *facts.storage;
    json["storage"] = {{"data_dir", core::printable(facts.data_dir)},
                       {"files_seen", storage.files_seen},
                       {"files_read", storage.files_read},
                       {"bytes_read", storage.bytes_read},
                       {"cached_share", storage.cached_share},
                       {"from_storage", storage.dropped},
                       {"open_seconds", storage.open_seconds},
                       {"slow_open_seconds", storage.slow_open_seconds},
                       {"bytes_per_second", storage.bytes_per_second},
                       {"cached_bytes_per_second", storage.cached_bytes_per_second}};
  }
  json["estimate"] = nullptr;
  if (facts.estimate) json["estimate"] = *facts.estimate;
  json["advice"] = Json::array();
  for (const Advice& advice : advice_from(facts))
    json["advice"].push_back({{"flag", advice.flag}, {"reason", advice.reason}});
  json["warnings"] = warnings_from(facts);
  json["missing"] = facts.missing;
  return json;
}

}  // namespace stoker::train
