// SPDX-License-Identifier: Apache-2.0
// Graphs through LibTorch's CUDAGraph, which gives their memory a pool of its own and lets the default generator of the
// device draw on at each replay. LibTorch before 2.1 records in a mode in which any other thread that requests
// memory or an event of CUDA, as workers of the loader do, spoils the record.
#include "engine/device/device.h"
#include "engine/device/torch_compat.h"

#if STOKER_TORCH_AT_LEAST(2, 1)

#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <exception>
#include <mutex>

namespace stoker::engine {
namespace {

/// After a record that failed the generator still believes that it is recorded.
void end_recording_of_generator(torch::Device device) {
  at::Generator generator = at::cuda::detail::getDefaultCUDAGenerator(device.index());
  const std::lock_guard<std::mutex> lock(generator.mutex());
#if STOKER_TORCH_AT_LEAST(2, 4)
  generator.graphsafe_set_state(generator.clone());
#else
  at::check_generator<at::CUDAGeneratorImpl>(generator)->capture_epilogue();
#endif
}

class CudaRecord : public RecordedWork {
 public:
  void begin() { graph_.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal); }
  void end() { graph_.capture_end(); }
  void replay() override { graph_.replay(); }

 private:
  at::cuda::CUDAGraph graph_;
};

class CudaGraphRunner : public GraphRunner {
 public:
  explicit CudaGraphRunner(torch::Device device)
      : device_(device), stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index())) {}

  void warm_up(const std::function<void()>& work) override {
    const c10::cuda::CUDAGuard device(device_);
    const c10::cuda::CUDAStream current = c10::cuda::getCurrentCUDAStream(device_.index());
    at::cuda::CUDAEvent before, after;
    before.record(current);
    before.block(stream_);
    {
      const c10::cuda::CUDAStreamGuard on_own(stream_);
      work();
    }
    after.record(stream_);
    after.block(current);
  }

  std::unique_ptr<RecordedWork> record(const std::function<void()>& work) override {
    const c10::cuda::CUDAGuard device(device_);
    // Memory that eager updates left in the pools of two streams is not used by the record.
    C10_CUDA_CHECK(cudaDeviceSynchronize());
    c10::cuda::CUDACachingAllocator::emptyCache();
    auto record = std::make_unique<CudaRecord>();
    const c10::cuda::CUDAStreamGuard on_own(stream_);
    record->begin();
    try {
      work();
    } catch (...) {
      abandon(*record);
      throw;
    }
    try {
      record->end();
    } catch (...) {
      abandon(*record);
      throw;
    }
    return record;
  }

 private:
  /// Takes the stream out of recording, as far as that is possible.
  void abandon(CudaRecord& record) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    if (cudaStreamIsCapturing(stream_.stream(), &status) == cudaSuccess && status != cudaStreamCaptureStatusNone) {
      try {
        record.end();
      } catch (const std::exception&) {  // it reports that the record is invalid, which is why we are here
      }
    }
    cudaGetLastError();  // clears it
    end_recording_of_generator(device_);
  }

  const torch::Device device_;
  const c10::cuda::CUDAStream stream_;
};

}  // namespace

std::string graph_obstacle(torch::Device device) { return device.is_cuda() ? "" : "the device is no CUDA device"; }

std::unique_ptr<GraphRunner> make_graph_runner(torch::Device device) {
  if (!device.is_cuda()) return nullptr;
  return std::make_unique<CudaGraphRunner>(device);
}

}  // namespace stoker::engine

#else

namespace stoker::engine {

std::string graph_obstacle(torch::Device device) {
  return device.is_cuda() ? "they need LibTorch 2.1 or newer" : "the device is no CUDA device";
}

std::unique_ptr<GraphRunner> make_graph_runner(torch::Device) { return nullptr; }

}  // namespace stoker::engine

#endif
