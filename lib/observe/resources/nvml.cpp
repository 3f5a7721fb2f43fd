// SPDX-License-Identifier: Apache-2.0
#include "observe/resources/nvml.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <type_traits>

#include "core/format.h"

namespace stoker::observe {

// Names, types and numbers of the functions below: NVIDIA's NVML API reference.

namespace {

constexpr int kSuccess = 0;
constexpr int kGpuTemperature = 0;  // the sensor on the die
constexpr int kMultiprocessorClock = 1, kMemoryClock = 2;
constexpr int kUnknownState = 32;      // of performance
constexpr uint64_t kClocksSet = 0x02;  // a reason for low clocks: somebody set them
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
  struct Place {
    char legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char name[32];  // "00000000:3B:00.0"
  };
  struct Process {
    unsigned pid;
    unsigned long long bytes;
    unsigned gpu_instance, compute_instance;
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
    find(cuda_version, "nvmlSystemGetCudaDriverVersion_v2");
    find(place, "nvmlDeviceGetPciInfo_v3");
    find(capability, "nvmlDeviceGetCudaComputeCapability");
    find(fan, "nvmlDeviceGetFanSpeed");
    find(performance_state, "nvmlDeviceGetPerformanceState");
    find(encoder, "nvmlDeviceGetEncoderUtilization");
    find(decoder, "nvmlDeviceGetDecoderUtilization");
    find(persistence, "nvmlDeviceGetPersistenceMode");
    find(ecc, "nvmlDeviceGetEccMode");
    find(retired_pages, "nvmlDeviceGetRetiredPages");
    find(retirement_pending, "nvmlDeviceGetRetiredPagesPendingStatus");
    find(remapped_rows, "nvmlDeviceGetRemappedRows");
    find(link_generation, "nvmlDeviceGetCurrPcieLinkGeneration");
    find(link_width, "nvmlDeviceGetCurrPcieLinkWidth");
    find(most_link_generation, "nvmlDeviceGetMaxPcieLinkGeneration");
    find(most_link_width, "nvmlDeviceGetMaxPcieLinkWidth");
    find(mig, "nvmlDeviceGetMigMode");
    find(processes, "nvmlDeviceGetComputeRunningProcesses_v3");
    if (!processes) find(processes, "nvmlDeviceGetComputeRunningProcesses_v2");  // the same structure
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
  Status (*cuda_version)(int*) = nullptr;
  Status (*place)(Device, Place*) = nullptr;
  Status (*capability)(Device, int* major, int* minor) = nullptr;
  Status (*fan)(Device, unsigned* percent) = nullptr;
  Status (*performance_state)(Device, int*) = nullptr;
  Status (*encoder)(Device, unsigned* percent, unsigned* microseconds) = nullptr;
  Status (*decoder)(Device, unsigned* percent, unsigned* microseconds) = nullptr;
  Status (*persistence)(Device, int* on) = nullptr;
  Status (*ecc)(Device, int* on, int* on_after_restart) = nullptr;
  Status (*retired_pages)(Device, int cause, unsigned* count, unsigned long long* addresses) = nullptr;
  Status (*retirement_pending)(Device, int*) = nullptr;
  Status (*remapped_rows)(Device, unsigned* correctable, unsigned* uncorrectable, unsigned* pending,
                          unsigned* failed) = nullptr;
  Status (*link_generation)(Device, unsigned*) = nullptr;
  Status (*link_width)(Device, unsigned*) = nullptr;
  Status (*most_link_generation)(Device, unsigned*) = nullptr;
  Status (*most_link_width)(Device, unsigned*) = nullptr;
  Status (*mig)(Device, unsigned* on, unsigned* on_after_reset) = nullptr;
  Status (*processes)(Device, unsigned* count, Process*) = nullptr;

  /// The value that `function` writes; nothing where this driver or board does not report it.
  template <typename Value>
  static std::optional<double> number(Status (*function)(Device, Value*), Device device) {
    Value value{};
    if (!function || function(device, &value) != kSuccess) return std::nullopt;
    return static_cast<double>(value);
  }
  template <typename Value>
  static std::optional<bool> flag(Status (*function)(Device, Value*), Device device) {
    const auto value = number(function, device);
    return value ? std::optional<bool>(*value != 0) : std::nullopt;
  }
  std::optional<double> clock_of(Status (*function)(Device, int, unsigned*), Device device, int which) const {
    unsigned megahertz = 0;
    if (!function || function(device, which, &megahertz) != kSuccess) return std::nullopt;
    return megahertz;
  }
  std::optional<double> state_of(Device device) const {
    const auto state = number(performance_state, device);
    return state && *state < kUnknownState ? state : std::nullopt;
  }
  Device found(const std::vector<std::string>& names) const {
    Device device = nullptr;
    for (const std::string& name : names) {
      const bool is_uuid = name.rfind("MIG-", 0) == 0 || name.rfind("GPU-", 0) == 0;
      const auto find = is_uuid ? by_uuid : by_pci_bus_id;
      if (find && find(name.c_str(), &device) == kSuccess) return device;
    }
    return nullptr;
  }
  void add_memory_errors(Device device, CardFacts& card) const;
  void add_processes(Device device, CardFacts& card) const;
  CardFacts describe(Device device) const;
};

/// The driver counts pages that were retired for either cause by themselves.
void Nvml::Library::add_memory_errors(Device device, CardFacts& card) const {
  constexpr int kTooSmall = 7, kCauses = 2;
  double pages = 0;
  bool is_known = retired_pages != nullptr;
  for (int cause = 0; cause < kCauses && is_known; ++cause) {
    unsigned count = 0;
    const Status status = retired_pages(device, cause, &count, nullptr);
    is_known = status == kSuccess || status == kTooSmall;
    pages += count;
  }
  if (is_known) card.retired_pages = pages;
  card.retirement_pending = flag(retirement_pending, device);
  unsigned correctable = 0, uncorrectable = 0, pending = 0, failed = 0;
  if (!remapped_rows || remapped_rows(device, &correctable, &uncorrectable, &pending, &failed) != kSuccess) return;
  card.remapped_rows = correctable + uncorrectable;
  card.retirement_pending = card.retirement_pending.value_or(false) || pending != 0;
  card.remapping_failed = failed != 0;
}

void Nvml::Library::add_processes(Device device, CardFacts& card) const {
  constexpr unsigned kMost = 64;
  constexpr unsigned long long kNotKnown = ~0ULL;
  Process found[kMost];
  unsigned count = kMost;
  if (!processes || processes(device, &count, found) != kSuccess) return;
  for (unsigned i = 0; i < std::min(count, kMost); ++i) {
    if (found[i].pid == static_cast<unsigned>(::getpid())) continue;
    std::string name;
    std::ifstream comm(core::format("/proc/{}/comm", found[i].pid));  // empty: in another container
    std::getline(comm, name);
    const double bytes = found[i].bytes == kNotKnown ? 0 : static_cast<double>(found[i].bytes);
    card.processes.push_back({found[i].pid, core::printable(name), bytes});
  }
}

CardFacts Nvml::Library::describe(Device device) const {
  CardFacts card;
  char text[kNameLength] = "";
  if (name && name(device, text, sizeof text) == kSuccess) card.name = core::printable(text);
  Place at{};
  if (place && place(device, &at) == kSuccess) {
    card.place = std::string(at.name, ::strnlen(at.name, sizeof at.name));
    std::transform(card.place.begin(), card.place.end(), card.place.begin(), ::tolower);
  }
  int major = 0, minor = 0;
  if (capability && capability(device, &major, &minor) == kSuccess) {
    card.compute_capability = core::format("{}.{}", major, minor);
  }
  card.persistence = flag(persistence, device);
  int is_on = 0, will_be_on = 0;
  if (ecc && ecc(device, &is_on, &will_be_on) == kSuccess) card.ecc = is_on != 0;
  unsigned parts = 0, parts_later = 0;
  if (mig && mig(device, &parts, &parts_later) == kSuccess) card.mig = parts != 0;
  card.link_generation = number(link_generation, device);
  card.link_width = number(link_width, device);
  card.most_link_generation = number(most_link_generation, device);
  card.most_link_width = number(most_link_width, device);
  card.highest_memory_clock_mhz = clock_of(highest_clock, device, kMemoryClock);
  add_memory_errors(device, card);
  add_processes(device, card);
  return card;
}

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

GpuReading Nvml::read(const std::vector<std::string>& names) const {
  GpuReading reading;
  if (!library_) return reading;
  const Library::Device device = library_->found(names);
  return device == nullptr ? reading : read_device(device);
}

GpuReading Nvml::read_device(void* which) const {
  GpuReading reading;
  const Library& library = *library_;
  const auto device = static_cast<Library::Device>(which);
  Library::Utilization utilization{};
  if (library.utilization && library.utilization(device, &utilization) == kSuccess) {
    reading.busy_percent = utilization.gpu;
    reading.memory_percent = utilization.memory;
  }
  Library::Memory memory{};
  if (library.memory && library.memory(device, &memory) == kSuccess) {
    reading.memory_used_bytes = static_cast<double>(memory.used);
    reading.memory_total_bytes = static_cast<double>(memory.total);
  }
  if (const auto milliwatts = Library::number(library.power, device)) reading.power_watts = 1e-3 * *milliwatts;
  unsigned celsius = 0, percent = 0, period = 0;
  if (library.temperature && library.temperature(device, kGpuTemperature, &celsius) == kSuccess) {
    reading.celsius = celsius;
  }
  if (library.encoder && library.encoder(device, &percent, &period) == kSuccess) reading.encoder_percent = percent;
  if (library.decoder && library.decoder(device, &percent, &period) == kSuccess) reading.decoder_percent = percent;
  reading.fan_percent = Library::number(library.fan, device);
  reading.performance_state = library.state_of(device);
  reading.clock_mhz = library.clock_of(library.clock, device, kMultiprocessorClock);
  reading.highest_clock_mhz = library.clock_of(library.highest_clock, device, kMultiprocessorClock);
  reading.memory_clock_mhz = library.clock_of(library.clock, device, kMemoryClock);
  unsigned long long reasons = 0;
  if (library.clock_reasons && library.clock_reasons(device, &reasons) == kSuccess) {
    reading.clock_reasons = reasons;
  }
  return reading;
}

std::string Nvml::cuda_version() const {
  int version = 0;
  const bool is_known = library_ && library_->cuda_version && library_->cuda_version(&version) == kSuccess;
  return is_known ? core::format("{}.{}", version / 1000, version % 1000 / 10) : "";
}

std::vector<CardFacts> Nvml::cards() const {
  std::vector<CardFacts> cards;
  unsigned count = 0;
  if (!library_ || !library_->count || !library_->by_index || library_->count(&count) != kSuccess) return cards;
  for (unsigned index = 0; index < count; ++index) {
    Library::Device device = nullptr;
    if (library_->by_index(index, &device) == kSuccess) cards.push_back(whole(device));
  }
  return cards;
}

std::optional<CardFacts> Nvml::card(const std::vector<std::string>& names) const {
  const Library::Device device = library_ ? library_->found(names) : nullptr;
  return device == nullptr ? std::nullopt : std::optional<CardFacts>(whole(device));
}

CardFacts Nvml::whole(void* device) const {
  CardFacts card = library_->describe(static_cast<Library::Device>(device));
  card.now = read_device(device);
  if (card.now.clock_reasons) card.clocks_locked = (*card.now.clock_reasons & kClocksSet) != 0;
  return card;
}

}  // namespace stoker::observe
