// SPDX-License-Identifier: Apache-2.0
#include "observe/resources/resources.h"

#include <dlfcn.h>

#include <algorithm>
#include <iterator>
#include <type_traits>

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

std::string share_text(const Figure& used, const Figure& total) {
  if (!used || !total || *total <= 0) return " n/a";
  return format("{:.1f}/{:.1f}GB({:.1f}%)", *used / 1e9, *total / 1e9, 100 * *used / *total);
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
  texts.gpu = reading.gpu.busy_percent ? format("GPU: {:.0f}%", *reading.gpu.busy_percent) : "GPU: n/a";
  texts.vram = "VRAM:" + share_text(reading.gpu.memory_used_bytes, reading.gpu.memory_total_bytes);
  texts.cpu = reading.cpu_percent ? format("CPU: {:.1f}%", *reading.cpu_percent) : "CPU: n/a";
  texts.ram = "RAM:" + share_text(reading.ram_used_bytes, reading.ram_limit_bytes);
  const auto reasons = slowdown_reasons(reading.gpu.clock_reasons.value_or(0));
  if (!reasons.empty()) texts.slowed = "GPU slowed by " + core::list_text(reasons);
  return texts;
}

std::string resource_text(const ResourceReading& reading) {
  const ResourceTexts texts = resource_texts(reading);
  const std::string text = texts.gpu + " | " + texts.vram + " | " + texts.cpu + " | " + texts.ram;
  return texts.slowed.empty() ? text : text + " | " + texts.slowed;
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

// Names, types and numbers of the functions below: NVIDIA's NVML API reference.

namespace {

constexpr int kSuccess = 0;
constexpr int kGpuTemperature = 0;  // the sensor on the die
constexpr int kMultiprocessorClock = 1;
constexpr unsigned kNameLength = 96;

}  // namespace

/// The functions that we call; a null pointer is one that this driver does not have.
struct Nvml::Library {
  using Device = struct nvmlDevice_st*;
  using Status = int;
  struct Utilization {
    unsigned gpu, memory;  // percent of the last sample period
  };
  struct Memory {
    unsigned long long total, free, used;  // bytes
  };

  explicit Library(void* handle) {
    const auto find = [handle](auto& function, const char* symbol) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(handle, symbol));
    };
    find(init, "nvmlInit_v2");
    find(shutdown, "nvmlShutdown");
    find(driver_version, "nvmlSystemGetDriverVersion");
    find(count, "nvmlDeviceGetCount_v2");
    find(by_index, "nvmlDeviceGetHandleByIndex_v2");
    find(by_pci_bus_id, "nvmlDeviceGetHandleByPciBusId_v2");
    find(by_uuid, "nvmlDeviceGetHandleByUUID");
    find(name, "nvmlDeviceGetName");
    find(utilization, "nvmlDeviceGetUtilizationRates");
    find(memory, "nvmlDeviceGetMemoryInfo");
    find(power, "nvmlDeviceGetPowerUsage");
    find(temperature, "nvmlDeviceGetTemperature");
    find(clock, "nvmlDeviceGetClockInfo");
    find(highest_clock, "nvmlDeviceGetMaxClockInfo");
    find(clock_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
    if (!clock_reasons) find(clock_reasons, "nvmlDeviceGetCurrentClocksEventReasons");  // its name since driver 535
  }

  Status (*init)() = nullptr;
  Status (*shutdown)() = nullptr;
  Status (*driver_version)(char* text, unsigned length) = nullptr;
  Status (*count)(unsigned*) = nullptr;
  Status (*by_index)(unsigned, Device*) = nullptr;
  Status (*by_pci_bus_id)(const char*, Device*) = nullptr;
  Status (*by_uuid)(const char*, Device*) = nullptr;
  Status (*name)(Device, char* text, unsigned length) = nullptr;
  Status (*utilization)(Device, Utilization*) = nullptr;
  Status (*memory)(Device, Memory*) = nullptr;
  Status (*power)(Device, unsigned* milliwatts) = nullptr;
  Status (*temperature)(Device, int sensor, unsigned* celsius) = nullptr;
  Status (*clock)(Device, int which, unsigned* megahertz) = nullptr;
  Status (*highest_clock)(Device, int which, unsigned* megahertz) = nullptr;
  Status (*clock_reasons)(Device, unsigned long long*) = nullptr;
};

Nvml::Nvml(const std::string& library) {
  void* const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    failure_ = library + " cannot be loaded: no NVIDIA driver";
    return;
  }
  // Never unloaded: the driver's libraries leave threads and exit handlers behind.
  auto found = std::make_unique<Library>(handle);
  if (!found->init || !found->shutdown || found->init() != kSuccess) {
    failure_ = library + " cannot reach the driver";
    return;
  }
  library_ = std::move(found);
}

Nvml::~Nvml() {
  if (library_) library_->shutdown();
}

std::string Nvml::driver_version() const {
  char text[kNameLength] = "";
  const bool known = library_ && library_->driver_version && library_->driver_version(text, sizeof text) == kSuccess;
  return known ? text : "";
}

std::vector<std::string> Nvml::device_names() const {
  std::vector<std::string> names;
  unsigned count = 0;
  if (!library_ || !library_->count || !library_->by_index || library_->count(&count) != kSuccess) return names;
  for (unsigned index = 0; index < count; ++index) {
    Library::Device device = nullptr;
    char text[kNameLength] = "unknown";
    if (library_->by_index(index, &device) == kSuccess && library_->name) library_->name(device, text, sizeof text);
    names.push_back(text);
  }
  return names;
}

GpuReading Nvml::read(const std::vector<std::string>& names) {
  GpuReading reading;
  Library::Device device = nullptr;
  const auto is_found = [&](const std::string& name) {
    const bool is_uuid = name.rfind("MIG-", 0) == 0 || name.rfind("GPU-", 0) == 0;
    const auto find = is_uuid ? library_->by_uuid : library_->by_pci_bus_id;
    return find && find(name.c_str(), &device) == kSuccess;
  };
  if (!library_ || std::none_of(names.begin(), names.end(), is_found)) return reading;
  Library::Utilization utilization{};
  if (library_->utilization && library_->utilization(device, &utilization) == kSuccess) {
    reading.busy_percent = utilization.gpu;
  }
  Library::Memory memory{};
  if (library_->memory && library_->memory(device, &memory) == kSuccess) {
    reading.memory_used_bytes = static_cast<double>(memory.used);
    reading.memory_total_bytes = static_cast<double>(memory.total);
  }
  unsigned milliwatts = 0, celsius = 0;
  if (library_->power && library_->power(device, &milliwatts) == kSuccess) reading.power_watts = 1e-3 * milliwatts;
  if (library_->temperature && library_->temperature(device, kGpuTemperature, &celsius) == kSuccess) {
    reading.celsius = celsius;
  }
  unsigned clock = 0, highest = 0;
  if (library_->clock && library_->clock(device, kMultiprocessorClock, &clock) == kSuccess) reading.clock_mhz = clock;
  if (library_->highest_clock && library_->highest_clock(device, kMultiprocessorClock, &highest) == kSuccess) {
    reading.highest_clock_mhz = highest;
  }
  unsigned long long reasons = 0;
  if (library_->clock_reasons && library_->clock_reasons(device, &reasons) == kSuccess) {
    reading.clock_reasons = reasons;
  }
  return reading;
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
