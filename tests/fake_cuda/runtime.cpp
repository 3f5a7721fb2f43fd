// SPDX-License-Identifier: Apache-2.0
// A libcudart whose devices compute nothing: memory of devices is memory of the host, zeroed; copies copy; streams and
// events keep their order; kernels are launched and do nothing; graphs record and replay. Besides call.h:
//
//   STOKER_FAKE_CUDA_DEVICES=N    devices (1)
//   STOKER_FAKE_CUDA_BYTES=N      memory of each (4 GiB)
//   STOKER_FAKE_CUDA_CAPABILITY=N its major number (9)
//   STOKER_FAKE_CUDA_DELAY=SEED   work waits in its stream for a time drawn with this seed; without it, it is done at
//   once STOKER_FAKE_CUDA_COPIES=FILE  each copy to a device: number of bytes, FNV-1a of what lies there afterwards
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "call.h"

namespace {

using fake_cuda::Fault;
using Clock = std::chrono::steady_clock;

long number_of(const char* variable, long otherwise) {
  const char* const text = std::getenv(variable);
  return text != nullptr ? std::atol(text) : otherwise;
}

int file_of(const char* variable) {
  const char* const path = std::getenv(variable);
  return path != nullptr ? ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
}

void write_line(int file, const char* format, auto... values) {
  char line[200];
  const int length = std::snprintf(line, sizeof line, format, values...);
  if (::write(file, line, static_cast<size_t>(length)) < 0) return;
}

// Work. A stream does its operations in order; a wait is done once the event's turn has passed.

struct Event {
  int device = 0;
  uint64_t recorded = 0, passed = 0;  ///< turns
  Clock::time_point when;
  struct Graph* graph = nullptr;  ///< recorded there at last
};

struct Operation {
  std::function<void()> work;
  std::function<bool()> is_ready;  ///< none: at once
  bool is_foreign = false;         ///< another process makes it ready
};

struct Graph {
  std::vector<Operation> operations;
  uint64_t id = 0;
  bool valid = true;
};

struct Stream {
  int device = 0, priority = 0;
  unsigned flags = 0;
  std::deque<Operation> queue;
  Graph* graph = nullptr;  ///< that it is recorded in
};

struct Block {
  size_t bytes = 0;
  int device = 0;  ///< -1: page-locked memory of the host
};

std::recursive_mutex mutex;
using Lock = std::lock_guard<std::recursive_mutex>;

std::map<uintptr_t, Block> blocks;
std::vector<size_t> used;
std::set<Stream*> streams;
std::vector<Stream*> default_streams;
uint64_t graphs_begun = 0;
std::pair<int, int> peers_enabled[64];
size_t peers = 0;
cudaError_t sticky = cudaSuccess;

thread_local int current = 0;
thread_local cudaError_t last = cudaSuccess;
thread_local cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
thread_local Stream* origin = nullptr;  ///< stream of a record that this thread began
thread_local cudaStreamCaptureMode origin_mode = cudaStreamCaptureModeRelaxed;

int device_count() {
  static const int count = static_cast<int>([] {
    const long there = number_of("STOKER_FAKE_CUDA_DEVICES", 1);
    const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
    return visible != nullptr && *visible == '\0' ? 0 : there;
  }());
  return count;
}
size_t device_bytes() {
  static const auto bytes = static_cast<size_t>(number_of("STOKER_FAKE_CUDA_BYTES", 4L << 30));
  return bytes;
}
int capability() {
  static const int major = static_cast<int>(number_of("STOKER_FAKE_CUDA_CAPABILITY", 9));
  return major;
}
const char* delay_seed() {
  static const char* const seed = std::getenv("STOKER_FAKE_CUDA_DELAY");
  return seed;
}

void make_devices() {
  while (static_cast<int>(default_streams.size()) < device_count()) {
    auto* const stream = new Stream;
    stream->device = static_cast<int>(default_streams.size());
    default_streams.push_back(stream);
    streams.insert(stream);
    used.push_back(0);
  }
}

Stream* stream_of(cudaStream_t handle) {
  make_devices();
  const auto number = reinterpret_cast<uintptr_t>(handle);
  return number <= 2 ? default_streams[static_cast<size_t>(current)] : reinterpret_cast<Stream*>(handle);
}

bool is_ready(const Stream& stream) {
  return !stream.queue.empty() && (!stream.queue.front().is_ready || stream.queue.front().is_ready());
}

void do_next(Stream& stream) {
  const Operation next = std::move(stream.queue.front());
  stream.queue.pop_front();
  if (next.work) next.work();
}

/// Does work of all streams, in an order that is drawn, until `is_done` or there is none. Waits for other processes
/// where that is requested, with the mutex free.
void work_until(const std::function<bool()>& is_done, bool waits) {
  static std::mt19937 random(static_cast<unsigned>(delay_seed() ? std::atol(delay_seed()) : 0));
  while (!is_done()) {
    std::vector<Stream*> ready;
    for (Stream* const stream : streams) {
      if (is_ready(*stream)) ready.push_back(stream);
    }
    if (ready.empty()) {
      const auto is_foreign = [](Stream* stream) { return !stream->queue.empty() && stream->queue.front().is_foreign; };
      if (!waits || std::none_of(streams.begin(), streams.end(), is_foreign)) return;
      mutex.unlock();
      ::usleep(200);
      mutex.lock();
      continue;
    }
    do_next(*ready[random() % ready.size()]);
  }
}

void drain(Stream& stream) {
  work_until([&] { return stream.queue.empty(); }, true);
}
void drain_all(bool waits = true) {
  work_until([] { return false; }, waits);
}

/// A few operations of some streams, or all of them where there are no delays.
void let_time_pass() {
  if (delay_seed() == nullptr) return drain_all(false);
  static std::mt19937 random(static_cast<unsigned>(std::atol(delay_seed())) + 1);
  size_t left = random() % 4;
  work_until([&] { return left-- == 0; }, false);
}

void push(Stream& stream, Operation operation) {
  if (stream.graph != nullptr) {
    stream.graph->operations.push_back(std::move(operation));
    return;
  }
  stream.queue.push_back(std::move(operation));
  let_time_pass();
}

// Calls.

cudaError_t remember(cudaError_t error) {
  if (error != cudaSuccess) last = error;
  return error;
}

cudaError_t begin(const char* name) {
  const Fault fault = fake_cuda::begin(name);
  if (fault == Fault::memory) return remember(cudaErrorMemoryAllocation);
  if (sticky == cudaSuccess && device_count() == 0) return remember(cudaErrorNoDevice);
  return remember(sticky);
}

#define BEGIN()                                                                      \
  if (const cudaError_t fault = begin(__func__); fault != cudaSuccess) return fault; \
  const Lock lock(mutex);                                                            \
  make_devices()

/// True where this thread records a stream, which such a call makes invalid.
bool spoils_record() {
  if (origin == nullptr || origin_mode == cudaStreamCaptureModeRelaxed || mode == cudaStreamCaptureModeRelaxed)
    return false;
  origin->graph->valid = false;
  return true;
}
#define REFUSE_IN_RECORD() \
  if (spoils_record()) return remember(cudaErrorStreamCaptureUnsupported)

cudaError_t allocate(void** out, size_t bytes, int device) {
  *out = nullptr;
  if (bytes == 0) return cudaSuccess;
  size_t& taken = used[static_cast<size_t>(std::max(device, 0))];
  if (device >= 0 && taken + bytes > device_bytes()) return remember(cudaErrorMemoryAllocation);
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return remember(cudaErrorMemoryAllocation);
  if (device >= 0) taken += bytes;
  blocks[reinterpret_cast<uintptr_t>(memory)] = {bytes, device};
  *out = memory;
  return cudaSuccess;
}

cudaError_t release(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  drain_all();
  const auto found = blocks.find(reinterpret_cast<uintptr_t>(memory));
  if (found == blocks.end()) return remember(cudaErrorInvalidValue);
  if (found->second.device >= 0) used[static_cast<size_t>(found->second.device)] -= found->second.bytes;
  ::munmap(memory, found->second.bytes);
  blocks.erase(found);
  return cudaSuccess;
}

const Block* block_of(const void* memory) {
  const auto place = reinterpret_cast<uintptr_t>(memory);
  auto next = blocks.upper_bound(place);
  if (next == blocks.begin()) return nullptr;
  --next;
  return place < next->first + next->second.bytes ? &next->second : nullptr;
}

bool is_on_device(const void* memory) {
  const Block* const block = block_of(memory);
  return block != nullptr && block->device >= 0;
}

void write_copy(const void* memory, size_t bytes) {
  static const int file = file_of("STOKER_FAKE_CUDA_COPIES");
  if (file < 0) return;
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < bytes; ++i) hash = (hash ^ static_cast<const unsigned char*>(memory)[i]) * 0x100000001b3;
  write_line(file, "%zu %016llx\n", bytes, static_cast<unsigned long long>(hash));
}

/// As CUDA does: pageable memory is read before the call returns, and written before it does.
cudaError_t copy(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t rows,
                 cudaMemcpyKind kind, Stream& stream, bool waits) {
  if (width == 0 || rows == 0) return cudaSuccess;
  if (to == nullptr || from == nullptr) return remember(cudaErrorInvalidValue);
  const bool to_device = is_on_device(to), from_device = is_on_device(from);
  if ((kind == cudaMemcpyHostToDevice && (!to_device || from_device)) ||
      (kind == cudaMemcpyDeviceToHost && (to_device || !from_device)) ||
      (kind == cudaMemcpyDeviceToDevice && (!to_device || !from_device))) {
    return remember(cudaErrorInvalidValue);
  }
  std::shared_ptr<std::vector<char>> staged;
  const bool from_pageable = !from_device && block_of(from) == nullptr;
  if (from_pageable && stream.graph == nullptr) {
    staged = std::make_shared<std::vector<char>>(width * rows);
    for (size_t row = 0; row < rows; ++row) {
      std::memcpy(staged->data() + row * width, static_cast<const char*>(from) + row * from_pitch, width);
    }
    from_pitch = width;
  }
  push(stream, {[=] {
         const char* const source = staged ? staged->data() : static_cast<const char*>(from);
         for (size_t row = 0; row < rows; ++row) {
           std::memmove(static_cast<char*>(to) + row * to_pitch, source + row * from_pitch, width);
         }
         if (to_device && !from_device && rows == 1) write_copy(to, width);
       }});
  const bool to_pageable = !to_device && block_of(to) == nullptr;
  if (stream.graph == nullptr && (waits || to_pageable)) drain(stream);
  return cudaSuccess;
}

cudaError_t set(void* to, size_t pitch, int value, size_t width, size_t rows, Stream& stream) {
  if (width == 0 || rows == 0) return cudaSuccess;
  if (!is_on_device(to)) return remember(cudaErrorInvalidValue);
  push(stream, {[=] {
         for (size_t row = 0; row < rows; ++row) std::memset(static_cast<char*>(to) + row * pitch, value, width);
       }});
  return cudaSuccess;
}

cudaError_t launch(dim3 grid, dim3 block, cudaStream_t stream) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 || grid.z > 65535 || block.x == 0 ||
      size_t{block.x} * block.y * block.z > 1024) {
    return remember(cudaErrorInvalidConfiguration);
  }
  push(*stream_of(stream), {});
  return cudaSuccess;
}

}  // namespace

#define API [[gnu::visibility("default")]]
extern "C" {

API int fake_cuda_call(const char* name) {
  static const int file = file_of("STOKER_FAKE_CUDA_TRACE");
  static const char* const fault = std::getenv("STOKER_FAKE_CUDA_FAULT");
  static const long which = fault != nullptr ? std::atol(fault) : 0;
  static long calls = 0;
  long call = 0;
  {
    const Lock lock(mutex);
    call = ++calls;
    if (file >= 0) write_line(file, "%ld %s\n", call, name);
  }
  // Work takes time, so that what is measured for a time makes few calls.
  if (std::strstr(name, "emm") != nullptr || std::strstr(name, "Execute") != nullptr) ::usleep(200);
  if (call != which) return static_cast<int>(call > which && sticky != cudaSuccess ? Fault::illegal : Fault::none);
  const std::string kind = std::strchr(fault, ':') + 1;
  write_line(STDERR_FILENO, "fake CUDA: call %ld, %s: %s\n", call, name, kind.c_str());
  while (kind == "hang") ::pause();
  if (kind == "illegal") sticky = cudaErrorIllegalAddress;
  if (kind == "lost") sticky = cudaErrorUnknown;
  return static_cast<int>(kind == "memory" ? Fault::memory : kind == "lost" ? Fault::lost : Fault::illegal);
}

API void fake_cuda_queue(void* stream, bool (*is_ready)(void*), void (*work)(void*), void* argument) {
  const Lock lock(mutex);
  push(*stream_of(static_cast<cudaStream_t>(stream)),
       {[=] { work(argument); }, [=] { return is_ready(argument); }, true});
}

// Errors.

API cudaError_t cudaGetLastError() {
  const cudaError_t error = sticky != cudaSuccess ? sticky : last;
  last = cudaSuccess;
  return error;
}
API cudaError_t cudaPeekAtLastError() { return sticky != cudaSuccess ? sticky : last; }
API const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaSuccess                 ? "cudaSuccess"
         : error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation"
                                              : "cudaError";
}
API const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
    case cudaErrorUnknown: return "unknown error";
    case cudaErrorNotReady: return "device not ready";
    case cudaErrorNoDevice: return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    case cudaErrorPeerAccessAlreadyEnabled: return "peer access is already enabled";
    case cudaErrorStreamCaptureUnsupported: return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated: return "operation failed due to a previous error during capture";
    default: return "an error of the fake";
  }
}

// Devices.

API cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
API cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
API cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  BEGIN();
  *count = device_count();
  return cudaSuccess;
}
API cudaError_t cudaGetDevice(int* device) {
  BEGIN();
  *device = current;
  return cudaSuccess;
}
API cudaError_t cudaSetDevice(int device) {
  BEGIN();
  if (device < 0 || device >= device_count()) return remember(cudaErrorInvalidDevice);
  current = device;
  return cudaSuccess;
}
API cudaError_t cudaSetDeviceFlags(unsigned) { return begin(__func__); }
API cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  BEGIN();
  *flags = 0;
  return cudaSuccess;
}

#undef cudaGetDeviceProperties
API cudaError_t cudaGetDeviceProperties_v2(cudaDeviceProp* out, int device) {
  BEGIN();
  if (device < 0 || device >= device_count()) return remember(cudaErrorInvalidDevice);
  cudaDeviceProp facts{};
  std::snprintf(facts.name, sizeof facts.name, "Fake %zu MiB", device_bytes() >> 20);
  std::memcpy(facts.uuid.bytes, "FAKE CUDA DEV  0", 16);
  facts.uuid.bytes[15] = static_cast<char>('0' + device);
  facts.totalGlobalMem = device_bytes();
  facts.sharedMemPerBlock = 48 << 10;
  facts.sharedMemPerBlockOptin = 227 << 10;
  facts.sharedMemPerMultiprocessor = 228 << 10;
  facts.regsPerBlock = facts.regsPerMultiprocessor = 65536;
  facts.warpSize = 32;
  facts.maxThreadsPerBlock = facts.maxThreadsDim[0] = facts.maxThreadsDim[1] = 1024;
  facts.maxThreadsDim[2] = 64;
  facts.maxGridSize[0] = 2147483647;
  facts.maxGridSize[1] = facts.maxGridSize[2] = 65535;
  facts.major = capability();
  facts.multiProcessorCount = 4;
  facts.maxThreadsPerMultiProcessor = 2048;
  facts.maxBlocksPerMultiProcessor = 32;
  facts.l2CacheSize = 4 << 20;
  facts.memoryBusWidth = 256;
  facts.unifiedAddressing = facts.concurrentKernels = facts.canMapHostMemory = facts.cooperativeLaunch = 1;
  facts.asyncEngineCount = 2;
  facts.pciBusID = device == 0 ? 0x3b : 0x5e + device - 1;
  *out = facts;
  return cudaSuccess;
}
API cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp facts;
  if (const cudaError_t error = cudaGetDeviceProperties_v2(&facts, device); error != cudaSuccess) return error;
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = facts.maxThreadsPerBlock; break;
    case cudaDevAttrMaxBlockDimX: *value = facts.maxThreadsDim[0]; break;
    case cudaDevAttrMaxGridDimX: *value = facts.maxGridSize[0]; break;
    case cudaDevAttrMaxGridDimY: *value = facts.maxGridSize[1]; break;
    case cudaDevAttrMaxGridDimZ: *value = facts.maxGridSize[2]; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = static_cast<int>(facts.sharedMemPerBlock); break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = static_cast<int>(facts.sharedMemPerBlockOptin); break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      *value = static_cast<int>(facts.sharedMemPerMultiprocessor);
      break;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor: *value = facts.regsPerBlock; break;
    case cudaDevAttrWarpSize: *value = facts.warpSize; break;
    case cudaDevAttrMultiProcessorCount: *value = facts.multiProcessorCount; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = facts.maxThreadsPerMultiProcessor; break;
    case cudaDevAttrMaxBlocksPerMultiprocessor: *value = facts.maxBlocksPerMultiProcessor; break;
    case cudaDevAttrComputeCapabilityMajor: *value = facts.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = facts.minor; break;
    case cudaDevAttrL2CacheSize: *value = facts.l2CacheSize; break;
    default: *value = 0;
  }
  return cudaSuccess;
}
API cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  BEGIN();
  if (device < 0 || device >= device_count()) return remember(cudaErrorInvalidDevice);
  std::snprintf(text, static_cast<size_t>(length), "0000:%02x:00.0", device == 0 ? 0x3b : 0x5e + device - 1);
  return cudaSuccess;
}
API cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  BEGIN();
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return cudaSuccess;
}
API cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  BEGIN();
  *can = device != peer;
  return cudaSuccess;
}
API cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  BEGIN();
  for (size_t i = 0; i < peers; ++i) {
    if (peers_enabled[i] == std::pair(current, peer)) return remember(cudaErrorPeerAccessAlreadyEnabled);
  }
  if (peers < std::size(peers_enabled)) peers_enabled[peers++] = {current, peer};
  return cudaSuccess;
}
API cudaError_t cudaDeviceSynchronize() {
  BEGIN();
  REFUSE_IN_RECORD();
  drain_all();
  return cudaSuccess;
}
API cudaError_t cudaDeviceReset() { return begin(__func__); }

// Memory.

API cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  BEGIN();
  *total = device_bytes();
  *free = device_bytes() - used[static_cast<size_t>(current)];
  return cudaSuccess;
}
API cudaError_t cudaMalloc(void** out, size_t bytes) {
  BEGIN();
  REFUSE_IN_RECORD();
  return allocate(out, bytes, current);
}
API cudaError_t cudaMallocAsync(void** out, size_t bytes, cudaStream_t) {
  BEGIN();
  return allocate(out, bytes, current);
}
API cudaError_t cudaFree(void* memory) {
  BEGIN();
  REFUSE_IN_RECORD();
  return release(memory);
}
API cudaError_t cudaFreeAsync(void* memory, cudaStream_t) {
  BEGIN();
  return release(memory);
}
API cudaError_t cudaHostAlloc(void** out, size_t bytes, unsigned) {
  BEGIN();
  REFUSE_IN_RECORD();
  return allocate(out, bytes, -1);
}
API cudaError_t cudaMallocHost(void** out, size_t bytes) { return cudaHostAlloc(out, bytes, 0); }
API cudaError_t cudaFreeHost(void* memory) {
  BEGIN();
  REFUSE_IN_RECORD();
  return release(memory);
}
API cudaError_t cudaHostRegister(void* memory, size_t bytes, unsigned) {
  BEGIN();
  blocks[reinterpret_cast<uintptr_t>(memory)] = {bytes, -1};
  return cudaSuccess;
}
API cudaError_t cudaHostUnregister(void* memory) {
  BEGIN();
  drain_all();
  blocks.erase(reinterpret_cast<uintptr_t>(memory));
  return cudaSuccess;
}
API cudaError_t cudaHostGetDevicePointer(void** out, void* memory, unsigned) {
  BEGIN();
  *out = memory;
  return cudaSuccess;
}
API cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* out, const void* memory) {
  BEGIN();
  *out = {};
  const Block* const block = block_of(memory);
  out->type = block == nullptr    ? cudaMemoryTypeUnregistered
              : block->device < 0 ? cudaMemoryTypeHost
                                  : cudaMemoryTypeDevice;
  out->device = block == nullptr ? -2 : std::max(block->device, 0);
  if (block != nullptr) out->devicePointer = const_cast<void*>(memory);
  if (block == nullptr || block->device < 0) out->hostPointer = const_cast<void*>(memory);
  return cudaSuccess;
}
API cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  BEGIN();
  REFUSE_IN_RECORD();
  return copy(to, 0, from, 0, bytes, 1, kind, *stream_of(nullptr), true);
}
API cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  BEGIN();
  return copy(to, 0, from, 0, bytes, 1, kind, *stream_of(stream), false);
}
API cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes, cudaStream_t stream) {
  BEGIN();
  return copy(to, 0, from, 0, bytes, 1, cudaMemcpyDeviceToDevice, *stream_of(stream), false);
}
API cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                                  size_t rows, cudaMemcpyKind kind, cudaStream_t stream) {
  BEGIN();
  return copy(to, to_pitch, from, from_pitch, width, rows, kind, *stream_of(stream), false);
}
API cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  BEGIN();
  return set(to, 0, value, bytes, 1, *stream_of(nullptr));
}
API cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  BEGIN();
  return set(to, 0, value, bytes, 1, *stream_of(stream));
}
API cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t rows, cudaStream_t stream) {
  BEGIN();
  return set(to, pitch, value, width, rows, *stream_of(stream));
}

// Streams and events.

API cudaError_t cudaStreamCreateWithPriority(cudaStream_t* out, unsigned flags, int priority) {
  BEGIN();
  auto* const stream = new Stream;
  stream->device = current;
  stream->flags = flags;
  stream->priority = priority;
  streams.insert(stream);
  *out = reinterpret_cast<cudaStream_t>(stream);
  return cudaSuccess;
}
API cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned flags) {
  return cudaStreamCreateWithPriority(out, flags, 0);
}
API cudaError_t cudaStreamCreate(cudaStream_t* out) { return cudaStreamCreateWithPriority(out, 0, 0); }
API cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  BEGIN();
  Stream* const stream = stream_of(handle);
  drain(*stream);
  streams.erase(stream);
  delete stream;
  return cudaSuccess;
}
API cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  BEGIN();
  *priority = stream_of(stream)->priority;
  return cudaSuccess;
}
API cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  BEGIN();
  *flags = stream_of(stream)->flags;
  return cudaSuccess;
}
API cudaError_t cudaStreamQuery(cudaStream_t handle) {
  BEGIN();
  Stream& stream = *stream_of(handle);
  if (stream.graph != nullptr) {
    stream.graph->valid = false;
    return remember(cudaErrorStreamCaptureUnsupported);
  }
  let_time_pass();
  return stream.queue.empty() ? cudaSuccess : remember(cudaErrorNotReady);
}
API cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  BEGIN();
  Stream& stream = *stream_of(handle);
  if (stream.graph != nullptr) {
    stream.graph->valid = false;
    return remember(cudaErrorStreamCaptureUnsupported);
  }
  drain(stream);
  return cudaSuccess;
}
API cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event_handle, unsigned) {
  BEGIN();
  Stream& stream = *stream_of(handle);
  auto* const event = reinterpret_cast<Event*>(event_handle);
  if (event->graph != nullptr) {
    if (stream.graph == nullptr) stream.graph = event->graph;  // joins the record
    return cudaSuccess;
  }
  push(stream, {nullptr, [event, turn = event->recorded] { return event->passed >= turn; }});
  return cudaSuccess;
}
API cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t work, void* data) {
  BEGIN();
  push(*stream_of(stream), {[=] { work(data); }});
  return cudaSuccess;
}
API cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t work, void* data, unsigned) {
  BEGIN();
  push(*stream_of(stream), {[=] { work(stream, cudaSuccess, data); }});
  return cudaSuccess;
}

API cudaError_t cudaEventCreateWithFlags(cudaEvent_t* out, unsigned) {
  BEGIN();
  auto* const event = new Event;
  event->device = current;
  *out = reinterpret_cast<cudaEvent_t>(event);
  return cudaSuccess;
}
API cudaError_t cudaEventCreate(cudaEvent_t* out) { return cudaEventCreateWithFlags(out, 0); }
API cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  BEGIN();
  drain_all();
  delete reinterpret_cast<Event*>(handle);
  return cudaSuccess;
}
API cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle) {
  BEGIN();
  auto* const event = reinterpret_cast<Event*>(handle);
  Stream& stream = *stream_of(stream_handle);
  event->graph = stream.graph;
  if (stream.graph != nullptr) return cudaSuccess;
  const uint64_t turn = ++event->recorded;
  push(stream, {[event, turn] {
         event->passed = turn;
         event->when = Clock::now();
       }});
  return cudaSuccess;
}
API cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}
API cudaError_t cudaEventQuery(cudaEvent_t handle) {
  BEGIN();
  let_time_pass();
  const auto* const event = reinterpret_cast<Event*>(handle);
  return event->passed == event->recorded ? cudaSuccess : remember(cudaErrorNotReady);
}
API cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  BEGIN();
  const auto* const event = reinterpret_cast<Event*>(handle);
  work_until([&] { return event->passed == event->recorded; }, true);
  return cudaSuccess;
}
API cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  BEGIN();
  const auto* const first = reinterpret_cast<Event*>(from);
  const auto* const second = reinterpret_cast<Event*>(to);
  if (first->recorded == 0 || second->recorded == 0) return remember(cudaErrorInvalidResourceHandle);
  if (second->passed != second->recorded) return remember(cudaErrorNotReady);
  *milliseconds = std::chrono::duration<float, std::milli>(second->when - first->when).count();
  return cudaSuccess;
}

// Kernels.

API cudaError_t cudaLaunchKernel(const void*, dim3 grid, dim3 block, void**, size_t, cudaStream_t stream) {
  BEGIN();
  return launch(grid, block, stream);
}
API cudaError_t cudaLaunchCooperativeKernel(const void*, dim3 grid, dim3 block, void**, size_t, cudaStream_t stream) {
  BEGIN();
  return launch(grid, block, stream);
}
API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void*, void**) {
  BEGIN();
  return launch(config->gridDim, config->blockDim, config->stream);
}
API cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* out, const void*) {
  BEGIN();
  *out = {};
  out->maxThreadsPerBlock = 1024;
  out->numRegs = 32;
  out->ptxVersion = out->binaryVersion = capability() * 10;
  return cudaSuccess;
}
API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks_out, const void*, int, size_t) {
  BEGIN();
  *blocks_out = 2;
  return cudaSuccess;
}
API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks_out, const void*, int, size_t,
                                                                       unsigned) {
  BEGIN();
  *blocks_out = 2;
  return cudaSuccess;
}

namespace {
struct Configuration {
  dim3 grid, block;
  size_t shared;
  void* stream;
};
thread_local std::vector<Configuration> configurations;
void* registered = nullptr;
}  // namespace

API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void* stream) {
  configurations.push_back({grid, block, shared, stream});
  return 0;
}
API cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  const Configuration last_one = configurations.back();
  configurations.pop_back();
  *grid = last_one.grid;
  *block = last_one.block;
  *shared = last_one.shared;
  *static_cast<void**>(stream) = last_one.stream;
  return cudaSuccess;
}
API void** __cudaRegisterFatBinary(void*) { return &registered; }
API void __cudaRegisterFatBinaryEnd(void**) {}
API void __cudaUnregisterFatBinary(void**) {}
API void __cudaRegisterFunction(void**, const char*, char*, const char*, int, void*, void*, void*, void*, int*) {}
API void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
API char __cudaInitModule(void**) { return 1; }

// Graphs.

API cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* other) {
  BEGIN();
  std::swap(mode, *other);
  return cudaSuccess;
}
API cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode how) {
  BEGIN();
  Stream& stream = *stream_of(handle);
  if (stream.graph != nullptr) return remember(cudaErrorIllegalState);
  stream.graph = new Graph;
  stream.graph->id = ++graphs_begun;
  origin = &stream;
  origin_mode = how;
  return cudaSuccess;
}
API cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* out) {
  BEGIN();
  *out = nullptr;
  Graph* const graph = stream_of(handle)->graph;
  if (graph == nullptr) return remember(cudaErrorIllegalState);
  for (Stream* const stream : streams) {
    if (stream->graph == graph) stream->graph = nullptr;
  }
  origin = nullptr;
  if (!graph->valid) return remember(cudaErrorStreamCaptureInvalidated);
  *out = reinterpret_cast<cudaGraph_t>(graph);
  return cudaSuccess;
}
API cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  BEGIN();
  const Graph* const graph = stream_of(handle)->graph;
  *status = graph == nullptr ? cudaStreamCaptureStatusNone
            : graph->valid   ? cudaStreamCaptureStatusActive
                             : cudaStreamCaptureStatusInvalidated;
  return cudaSuccess;
}
#undef cudaStreamGetCaptureInfo
API cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t handle, cudaStreamCaptureStatus* status,
                                            unsigned long long* id, cudaGraph_t* graph, const cudaGraphNode_t** nodes,
                                            size_t* count) {
  if (const cudaError_t error = cudaStreamIsCapturing(handle, status); error != cudaSuccess) return error;
  const Lock lock(mutex);
  Graph* const own = stream_of(handle)->graph;
  if (id != nullptr) *id = own != nullptr ? own->id : 0;
  if (graph != nullptr) *graph = reinterpret_cast<cudaGraph_t>(own);
  if (nodes != nullptr) *nodes = nullptr;
  if (count != nullptr) *count = 0;
  return cudaSuccess;
}
API cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t*, size_t* count) {
  BEGIN();
  *count = reinterpret_cast<Graph*>(graph)->operations.size();
  return cudaSuccess;
}
API cudaError_t cudaGraphInstantiate(cudaGraphExec_t* out, cudaGraph_t graph, unsigned long long) {
  BEGIN();
  *out = reinterpret_cast<cudaGraphExec_t>(new Graph(*reinterpret_cast<Graph*>(graph)));
  return cudaSuccess;
}
API cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* out, cudaGraph_t graph, unsigned long long flags) {
  return cudaGraphInstantiate(out, graph, flags);
}
API cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  BEGIN();
  for (const Operation& operation : reinterpret_cast<Graph*>(exec)->operations) push(*stream_of(stream), operation);
  return cudaSuccess;
}
API cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  BEGIN();
  delete reinterpret_cast<Graph*>(graph);
  return cudaSuccess;
}
API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  BEGIN();
  delete reinterpret_cast<Graph*>(exec);
  return cudaSuccess;
}

}  // extern "C"
