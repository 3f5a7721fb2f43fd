// SPDX-License-Identifier: Apache-2.0
#include "observe/resources/resources.h"

#include <algorithm>
#include <iterator>

#include "core/format.h"

namespace stoker::observe {
namespace {

using core::format;
using Figure = std::optional<double>;

/// Every figure of a reading that is a number.
struct Column {
  const char* name;
  Figure& (*of)(ResourceReading&);
  bool highest;  ///< over a window; else the mean
};

const Column kColumns[] = {
    {"gpu_percent", [](ResourceReading& r) -> Figure& { return r.gpu.busy_percent; }, false},
    {"gpu_memory_used_bytes", [](ResourceReading& r) -> Figure& { return r.gpu.memory_used_bytes; }, true},
    {"gpu_memory_total_bytes", [](ResourceReading& r) -> Figure& { return r.gpu.memory_total_bytes; }, true},
    {"gpu_power_watts", [](ResourceReading& r) -> Figure& { return r.gpu.power_watts; }, false},
    {"gpu_clock_mhz", [](ResourceReading& r) -> Figure& { return r.gpu.clock_mhz; }, false},
    {"gpu_highest_clock_mhz", [](ResourceReading& r) -> Figure& { return r.gpu.highest_clock_mhz; }, true},
    {"gpu_memory_clock_mhz", [](ResourceReading& r) -> Figure& { return r.gpu.memory_clock_mhz; }, false},
    {"gpu_memory_percent", [](ResourceReading& r) -> Figure& { return r.gpu.memory_percent; }, false},
    {"gpu_encoder_percent", [](ResourceReading& r) -> Figure& { return r.gpu.encoder_percent; }, false},
    {"gpu_decoder_percent", [](ResourceReading& r) -> Figure& { return r.gpu.decoder_percent; }, false},
    {"gpu_fan_percent", [](ResourceReading& r) -> Figure& { return r.gpu.fan_percent; }, true},
    {"gpu_performance_state", [](ResourceReading& r) -> Figure& { return r.gpu.performance_state; }, true},
    {"gpu_celsius", [](ResourceReading& r) -> Figure& { return r.gpu.celsius; }, true},
    {"cpu_percent", [](ResourceReading& r) -> Figure& { return r.cpu_percent; }, false},
    {"machine_cpu_percent", [](ResourceReading& r) -> Figure& { return r.machine_cpu_percent; }, false},
    {"other_cpus", [](ResourceReading& r) -> Figure& { return r.other_cpus; }, false},
    {"threads_without_cpu", [](ResourceReading& r) -> Figure& { return r.threads_without_cpu; }, false},
    {"involuntary_switches_per_second", [](ResourceReading& r) -> Figure& { return r.involuntary_switches_per_second; },
     false},
    {"ram_used_bytes", [](ResourceReading& r) -> Figure& { return r.ram_used_bytes; }, true},
    {"ram_limit_bytes", [](ResourceReading& r) -> Figure& { return r.ram_limit_bytes; }, true},
    {"resident_bytes", [](ResourceReading& r) -> Figure& { return r.resident_bytes; }, true},
    {"read_bytes_per_second", [](ResourceReading& r) -> Figure& { return r.read_bytes_per_second; }, false},
    {"written_bytes_per_second", [](ResourceReading& r) -> Figure& { return r.written_bytes_per_second; }, false},
};

std::string share_text(const char* name, const Figure& used, const Figure& total) {
  if (!used || !total || *total <= 0) return "";
  return format("{}:{:.1f}/{:.1f}GB({:.1f}%)", name, *used / 1e9, *total / 1e9, 100 * *used / *total);
}

}  // namespace

void ResourceWindow::add(const ResourceReading& reading) {
  tallies_.resize(std::size(kColumns));
  ResourceReading copy = reading;
  for (size_t i = 0; i < std::size(kColumns); ++i) {
    const Figure figure = kColumns[i].of(copy);
    if (!figure) continue;
    Tally& tally = tallies_[i];
    tally.highest = tally.count == 0 ? *figure : std::max(tally.highest, *figure);
    tally.sum += *figure;
    ++tally.count;
  }
  if (reading.gpu.clock_reasons) clock_reasons_ = clock_reasons_.value_or(0) | *reading.gpu.clock_reasons;
}

ResourceReading ResourceWindow::summary() const {
  ResourceReading result;
  for (size_t i = 0; i < tallies_.size(); ++i) {
    const Tally& tally = tallies_[i];
    if (tally.count == 0) continue;
    kColumns[i].of(result) = kColumns[i].highest ? tally.highest : tally.sum / static_cast<double>(tally.count);
  }
  result.gpu.clock_reasons = clock_reasons_;
  return result;
}

ResourceTexts resource_texts(const ResourceReading& reading) {
  ResourceTexts texts;
  if (reading.gpu.busy_percent) texts.gpu = format("GPU: {:.0f}%", *reading.gpu.busy_percent);
  texts.vram = share_text("VRAM", reading.gpu.memory_used_bytes, reading.gpu.memory_total_bytes);
  if (reading.cpu_percent) texts.cpu = format("CPU: {:.1f}%", *reading.cpu_percent);
  texts.ram = share_text("RAM", reading.ram_used_bytes, reading.ram_limit_bytes);
  const auto reasons = slowdown_reasons(reading.gpu.clock_reasons.value_or(0));
  if (!reasons.empty()) texts.slowed = "GPU slowed by " + core::list_text(reasons);
  return texts;
}

std::string resource_text(const ResourceReading& reading) {
  const ResourceTexts texts = resource_texts(reading);
  std::string text;
  for (const std::string& part : {texts.gpu, texts.vram, texts.cpu, texts.ram, texts.slowed}) {
    if (!part.empty()) text += (text.empty() ? "" : " | ") + part;
  }
  return text;
}

core::Json resource_json(const ResourceReading& reading) {
  core::Json object = core::Json::object();
  ResourceReading copy = reading;
  for (const Column& column : kColumns) {
    const Figure figure = column.of(copy);
    object[column.name] = figure ? core::Json(*figure) : core::Json(nullptr);
  }
  object["gpu_slowed_by"] =
      reading.gpu.clock_reasons ? core::Json(slowdown_reasons(*reading.gpu.clock_reasons)) : core::Json(nullptr);
  return object;
}

std::vector<std::string> slowdown_reasons(uint64_t clock_reasons) {
  std::vector<std::string> reasons;
  const auto add = [&](uint64_t bits, const char* text) {
    if (clock_reasons & bits) reasons.emplace_back(text);
  };
  add(0x04, "power cap");
  add(0x20 | 0x40, "heat");  // in software, in hardware
  add(0x80, "power brake");
  // Hardware slowdown stands for heat or power brake where the driver does not distinguish them.
  if ((clock_reasons & (0x20 | 0x40 | 0x80)) == 0) add(0x08, "hardware slowdown");
  return reasons;
}

}  // namespace stoker::observe
