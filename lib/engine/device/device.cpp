// SPDX-License-Identifier: Apache-2.0
#include "engine/device/device.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <torch/version.h>

#include <cstdlib>

#include "core/error.h"
#include "core/format.h"
#include "core/system/threads.h"

namespace stoker::engine {

torch::Device open_device(const std::string& name) {
  if (name == "cpu") return torch::kCPU;
  const auto accelerators = list_accelerators();
  if (accelerators.empty()) {
    throw core::Error(core::ErrorKind::unavailable,
                      core::format("device {} was asked for, but {} sees no CUDA device", name, libtorch_text()),
                      "check the driver with nvidia-smi and that LibTorch is a CUDA build, or say --device cpu");
  }
  const torch::Device device(name);
  if (device.index() >= static_cast<int>(accelerators.size())) {
    throw core::Error(core::ErrorKind::unavailable,
                      core::format("device {} was asked for, but there are only {}", name, accelerators.size()),
                      "devices are numbered from 0");
  }
  return device;
}

void configure_backends(const BackendSettings& settings) {
  // LibTorch's pool, twice while it is made anew; OpenMP's; and one for what watches the run.
  core::require_threads(3 * settings.threads + 1 + settings.other_threads);
  at::set_num_threads(static_cast<int>(settings.threads));
  at::Context& context = at::globalContext();
  context.setAllowTF32CuBLAS(settings.tf32);
  context.setAllowTF32CuDNN(settings.tf32);
  context.setBenchmarkCuDNN(settings.benchmark && !settings.deterministic);
  context.setDeterministicCuDNN(settings.deterministic);
  context.setDeterministicAlgorithms(settings.deterministic, /*warn_only=*/false);
  // cuBLAS reads this when its first handle is made; see NVIDIA's cuBLAS manual, "Results reproducibility".
  if (settings.deterministic) ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
}

std::string libtorch_text() {
  return core::format("LibTorch {}.{}.{}, {} build", TORCH_VERSION_MAJOR, TORCH_VERSION_MINOR, TORCH_VERSION_PATCH,
                      at::globalContext().hasCUDA() ? "CUDA" : "CPU");
}

}  // namespace stoker::engine
