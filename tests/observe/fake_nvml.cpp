// SPDX-License-Identifier: Apache-2.0
// Stands in for NVIDIA's libnvidia-ml.so.1: one GPU that reports everything at 3b:00.0, one that reports only its
// memory at 5e:00.0. Has the newer name of the clock reasons and not the older one.
#include <cstdio>
#include <cstring>

namespace {

constexpr int kSuccess = 0, kNotSupported = 3, kNotFound = 6;
int full_device, shy_device;

}  // namespace

extern "C" {

int nvmlInit_v2() { return kSuccess; }
int nvmlShutdown() { return kSuccess; }

int nvmlSystemGetDriverVersion(char* text, unsigned length) {
  std::snprintf(text, length, "535.183.01");
  return kSuccess;
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return kSuccess;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = index == 0 ? &full_device : &shy_device;
  return kSuccess;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** device) {
  *device = std::strstr(bus_id, "3b:00.0") ? &full_device : std::strstr(bus_id, "5e:00.0") ? &shy_device : nullptr;
  return *device ? kSuccess : kNotFound;
}

int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {  // a part of the card at 3b:00.0
  *device = std::strcmp(uuid, "MIG-1b4e28ba-2fa1-11d2-883f-0016d3cca427") == 0 ? &shy_device : nullptr;
  return *device ? kSuccess : kNotFound;
}

int nvmlDeviceGetName(void* device, char* text, unsigned length) {
  std::snprintf(text, length, device == &full_device ? "NVIDIA Fake 24GB" : "NVIDIA Shy");
  return kSuccess;
}

int nvmlDeviceGetUtilizationRates(void* device, unsigned* gpu_and_memory) {
  if (device != &full_device) return kNotSupported;
  gpu_and_memory[0] = 85;
  gpu_and_memory[1] = 40;
  return kSuccess;
}

int nvmlDeviceGetMemoryInfo(void*, unsigned long long* total_free_used) {
  total_free_used[0] = 24'000'000'000ULL;
  total_free_used[1] = 11'700'000'000ULL;
  total_free_used[2] = 12'300'000'000ULL;
  return kSuccess;
}

int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  if (device != &full_device) return kNotSupported;
  *milliwatts = 312500;
  return kSuccess;
}

int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* celsius) {
  if (device != &full_device || sensor != 0) return kNotSupported;
  *celsius = 83;
  return kSuccess;
}

int nvmlDeviceGetClockInfo(void* device, int which, unsigned* megahertz) {
  if (device != &full_device || which != 1) return kNotSupported;
  *megahertz = 1350;
  return kSuccess;
}

int nvmlDeviceGetMaxClockInfo(void* device, int which, unsigned* megahertz) {
  if (device != &full_device || which != 1) return kNotSupported;
  *megahertz = 1980;
  return kSuccess;
}

int nvmlDeviceGetCurrentClocksEventReasons(void* device, unsigned long long* reasons) {
  if (device != &full_device) return kNotSupported;
  *reasons = 0x04 | 0x20;  // power cap, heat
  return kSuccess;
}

}  // extern "C"
