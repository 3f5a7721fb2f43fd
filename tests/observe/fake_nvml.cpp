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
  *device = ::strcasestr(bus_id, "3b:00.0") ? &full_device : ::strcasestr(bus_id, "5e:00.0") ? &shy_device : nullptr;
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
  if (device != &full_device || (which != 1 && which != 2)) return kNotSupported;
  *megahertz = which == 1 ? 1350 : 9000;
  return kSuccess;
}

int nvmlDeviceGetMaxClockInfo(void* device, int which, unsigned* megahertz) {
  if (device != &full_device || (which != 1 && which != 2)) return kNotSupported;
  *megahertz = which == 1 ? 1980 : 9501;
  return kSuccess;
}

int nvmlDeviceGetCurrentClocksEventReasons(void* device, unsigned long long* reasons) {
  if (device != &full_device) return kNotSupported;
  *reasons = 0x02 | 0x04 | 0x20;  // clocks set, power cap, heat
  return kSuccess;
}

int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = 12020;
  return kSuccess;
}

int nvmlDeviceGetPciInfo_v3(void* device, char* info) {  // the name behind 16 characters and five numbers
  std::snprintf(info + 36, 32, device == &full_device ? "00000000:3B:00.0" : "00000000:5E:00.0");
  return kSuccess;
}

int nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) {
  if (device != &full_device) return kNotSupported;
  *major = 8;
  *minor = 9;
  return kSuccess;
}

int number(void* device, unsigned value, unsigned* out) {
  if (device != &full_device) return kNotSupported;
  *out = value;
  return kSuccess;
}

int nvmlDeviceGetFanSpeed(void* device, unsigned* out) { return number(device, 45, out); }
int nvmlDeviceGetPerformanceState(void* device, unsigned* out) { return number(device, 2, out); }
int nvmlDeviceGetPersistenceMode(void* device, unsigned* out) { return number(device, 0, out); }
int nvmlDeviceGetRetiredPagesPendingStatus(void* device, unsigned* out) { return number(device, 1, out); }
int nvmlDeviceGetCurrPcieLinkGeneration(void* device, unsigned* out) { return number(device, 3, out); }
int nvmlDeviceGetCurrPcieLinkWidth(void* device, unsigned* out) { return number(device, 4, out); }
int nvmlDeviceGetMaxPcieLinkGeneration(void* device, unsigned* out) { return number(device, 4, out); }
int nvmlDeviceGetMaxPcieLinkWidth(void* device, unsigned* out) { return number(device, 16, out); }

int two(void* device, unsigned first, unsigned second, unsigned* a, unsigned* b) {
  *b = second;
  return number(device, first, a);
}

int nvmlDeviceGetEncoderUtilization(void* device, unsigned* a, unsigned* b) { return two(device, 11, 1000, a, b); }
int nvmlDeviceGetDecoderUtilization(void* device, unsigned* a, unsigned* b) { return two(device, 12, 1000, a, b); }
int nvmlDeviceGetEccMode(void* device, unsigned* a, unsigned* b) { return two(device, 1, 1, a, b); }
int nvmlDeviceGetMigMode(void* device, unsigned* a, unsigned* b) { return two(device, 0, 0, a, b); }

int nvmlDeviceGetRetiredPages(void* device, int cause, unsigned* count, unsigned long long*) {
  constexpr int kTooSmall = 7;
  if (device != &full_device) return kNotSupported;
  *count = cause == 0 ? 3 : 1;
  return kTooSmall;
}

int nvmlDeviceGetRemappedRows(void* device, unsigned* correctable, unsigned* uncorrectable, unsigned* pending,
                              unsigned* failed) {
  if (device != &full_device) return kNotSupported;
  *correctable = 2;
  *uncorrectable = 1;
  *pending = *failed = 0;
  return kSuccess;
}

struct Process {
  unsigned pid;
  unsigned long long bytes;
  unsigned gpu_instance, compute_instance;
};

int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, Process* processes) {
  if (device != &full_device || *count < 1) return kNotSupported;
  *count = 1;
  processes[0] = {1, 11'500'000'000ULL, ~0U, ~0U};  // init, or what stands in its place
  return kSuccess;
}

}  // extern "C"
