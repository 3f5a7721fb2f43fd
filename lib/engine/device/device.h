// SPDX-License-Identifier: Apache-2.0
// Which device computes and how its backends are set. device_cuda.cpp or device_cpu.cpp implements the part that
// needs CUDA headers; CMake picks one by what LibTorch was built with.
#pragma once

#include <torch/types.h>

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/system/machine.h"

namespace stoker::engine {

/// The CUDA devices that LibTorch can use, and why it cannot although there is a driver; nothing on a CPU build. Makes
/// no CUDA context.
core::Accelerators list_accelerators();

/// The device of `found` that the name stands for. Throws Error{unavailable}, with the reason, where it is not among
/// them: a card may be lost while it is used.
core::AcceleratorFacts facts_of(const core::Accelerators& found, torch::Device device);

/// Whether this LibTorch has the kernels of float16 autocast for the CPU.
bool cpu_computes_float16();

/// "cpu" or "cuda:N", which becomes the current device of this thread. Throws Error{unavailable} when that device is
/// not there or does not compute, which is tried.
torch::Device open_device(const std::string& name);

struct BackendSettings {
  int64_t threads = 1;         ///< CPU threads inside one operation
  int64_t other_threads = 0;   ///< that the process will start besides: those of the loader
  bool tf32 = false;           ///< CUDA: matmul and convolution inputs rounded to 10 bits
  bool deterministic = false;  ///< only algorithms that give the same bits each time
  bool benchmark = true;       ///< CUDA: let cuDNN time its algorithms; off when deterministic
};
/// Throws Error{os} when that many threads cannot be created; LibTorch would wait for them for ever.
void configure_backends(const BackendSettings& settings);

/// For its lifetime cuDNN takes the algorithms that it thinks best, without trying them: trials take memory and time
/// for each new shape.
class NoSearchScope {
 public:
  NoSearchScope();
  ~NoSearchScope();
  NoSearchScope& operator=(NoSearchScope&&) = delete;  // not copied, not moved

 private:
  bool searched_;
};

/// A device's memory; 0 where unknown. Peaks are since the process began or forget_device_peak().
struct DeviceMemory {
  int64_t peak_bytes = 0;            ///< most that LibTorch has held, pieces between tensors included
  int64_t held_bytes = 0;            ///< that LibTorch holds now
  int64_t peak_allocated_bytes = 0;  ///< most that tensors and workspaces have taken
  int64_t allocated_bytes = 0;       ///< that they take now
  int64_t free_bytes = 0;            ///< free memory of the device, for all processes
  int64_t total_bytes = 0;
};
/// Never throws: nothing is known of a device that LibTorch has not used yet, or that has failed.
DeviceMemory device_memory(torch::Device device) noexcept;
/// As far as `read` came before it threw.
DeviceMemory device_memory_by(const std::function<void(DeviceMemory&)>& read) noexcept;
/// The free share of its memory, 0 to 1; 1 where unknown.
double free_memory_share(torch::Device device);
void forget_device_peak(torch::Device device);
/// Gives memory that no tensor uses back to the device.
void release_unused_memory(torch::Device device);

/// The names that the driver's tools may have for a CUDA device, the first that they have being the right one: as a
/// part of a card
/// ("MIG-..."), as a card ("GPU-..."), by its place ("00000000:3b:00.0"). For a part the place is that of the whole
/// card. None for the CPU.
std::vector<std::string> driver_names(torch::Device device);
/// "1b4e28ba-2fa1-11d2-883f-0016d3cca427" of 16 bytes.
std::string uuid_text(const char* bytes);

/// Whether LibTorch was built for CUDA, with a device at hand or without.
bool is_cuda_build();
/// "LibTorch 1.13.0, CPU build".
std::string libtorch_text();

/// Versions: "12.1", "8.9.2"; empty where this LibTorch has none.
struct CudaLibraries {
  std::string runtime, cudnn;
};
CudaLibraries cuda_libraries();

/// Everything that bits depend on besides options: "cpu, LibTorch 1.13.0, CPU build", "NVIDIA H200 (9.0),
/// LibTorch 2.11.0, CUDA build, cuDNN 91002". A device without an index is this thread's current one.
std::string computing_text(torch::Device device);

/// Waits until the device has done all queued work; nothing to wait for on the CPU.
void synchronize(torch::Device device);

// Marks in the stream of work of a device, whose times are read once it has passed them: no thread waits. The
// part with CUDA headers lives in device_cuda.cpp; CPUs have no time line of their own.

class DeviceTimeline {
 public:
  struct Mark {
    int what = 0;
    std::chrono::steady_clock::time_point time;  ///< on the host's clock, right to some 10 us at the start of the run
  };

  virtual ~DeviceTimeline() = default;
  /// Behind all work that was queued so far on the current stream.
  virtual void mark(int what) = 0;
  /// The oldest mark that was not yet taken, if the device has passed it. Never waits.
  virtual bool take(Mark& mark) = 0;
};

/// nullptr for the CPU. Waits once for the device.
std::unique_ptr<DeviceTimeline> make_device_timeline(torch::Device device);

// Work for a device that is recorded once, as a graph, and then done again with one launch. graph_cuda.cpp has it for
// CUDA; elsewhere there are no graphs.

/// Recorded operations, on the tensors that they were recorded with: they read what lies in these when replay() is
/// called, and write to the same memory each time. Numbers that the host gave to an operation are part of the record.
/// Random numbers are drawn anew, as if the host had requested it.
class RecordedWork {
 public:
  virtual ~RecordedWork() = default;
  /// Behind all work of the calling thread's current stream; returns at once.
  virtual void replay() = 0;
};

/// For one device; one thread.
class GraphRunner {
 public:
  virtual ~GraphRunner() = default;
  /// Does `work` without recording it, on the stream that record() records: libraries create there what they need once.
  /// Ordered as if it were work of the current stream.
  virtual void warm_up(const std::function<void()>& work) = 0;
  /// Calls `work` and records what it gives to the device; nothing of it is done. Memory that it allocates belongs to
  /// the record, also behind its tensors' life. The same work was warmed up before. Throws what `work` throws, and
  /// c10::Error where an operation cannot be recorded; then all is as before, but memory that LibTorch keeps of it.
  virtual std::unique_ptr<RecordedWork> record(const std::function<void()>& work) = 0;
};

/// Why there are no graphs on `device`, in a few words; empty where there are.
std::string graph_obstacle(torch::Device device);
/// null where there is an obstacle.
std::unique_ptr<GraphRunner> make_graph_runner(torch::Device device);

// Which exceptions mean that memory ran out, of the host or of a device. Torch-free header.

/// std::bad_alloc, CUDA's OutOfMemoryError, what the CPU allocator throws, and our own Error{out_of_memory}. By type
/// where there is one and by its words elsewhere: cuBLAS and cuDNN report it in words only.
bool is_out_of_memory(const std::exception& error);
/// For a device of whose memory the share `free` (0 to 1) is left. Where memory is short cuDNN reports only that it
/// finds no algorithm, which is also its error when there is none.
bool is_out_of_memory(const std::exception& error, double free);

/// The message of an exception, without the list of frames that LibTorch adds.
std::string short_text_of(const std::exception& error);

// Which library multiplies matrices on the CPU: detected in the running process, not of the build. Torch-free header.

struct BlasFacts {
  std::string path;        ///< path of the file that holds sgemm_, links resolved; empty: LibTorch has it inside
  std::string name;        ///< "OpenBLAS with OpenMP threads"
  bool reference = false;  ///< the slow one, from which every other one is measured
  bool onednn = false;     ///< convolutions run in oneDNN, whatever the BLAS is
};
BlasFacts blas_facts();

/// The library that a path names: "libopenblas", "openblas-openmp/libblas.so.3", ...
BlasFacts blas_of_path(const std::string& path);

}  // namespace stoker::engine
