// SPDX-License-Identifier: Apache-2.0
#include "engine/device/device.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <torch/version.h>

#include <cstdlib>
#include <new>

#include "core/error.h"
#include "core/format.h"
#include "core/system/worker_pool.h"
#include "engine/device/torch_compat.h"

namespace stoker::engine {
namespace {

/// A release of LibTorch that has no code for a device, and a device that is busy or broken, are noticed by the first
/// operation alone: better now than at the first update.
void try_to_compute(torch::Device device) {
  try {
    torch::zeros({1}, torch::TensorOptions(device)).add_(1);
    synchronize(device);
  } catch (const c10::Error& error) {
    throw core::Error(core::ErrorKind::unavailable,
                      core::format("device {} does not compute: {}", device.str(), short_text_of(error)),
                      "check it with nvidia-smi, and with train check that this LibTorch was built for it; "
                      "--device chooses another one or the CPU");
  }
}

}  // namespace

core::AcceleratorFacts facts_of(const core::Accelerators& found, torch::Device device) {
  const auto index = static_cast<size_t>(device.index());
  if (index < found.devices.size()) return found.devices[index];
  const std::string& why = found.failure.empty() ? found.absence : found.failure;
  throw core::Error(core::ErrorKind::unavailable,
                    core::format("device {} is there no more{}", device.str(), why.empty() ? "" : ": " + why),
                    "look at nvidia-smi and dmesg; the same command resumes once it is back");
}

torch::Device open_device(const std::string& name) {
  if (name == "cpu") return torch::kCPU;
  const auto [accelerators, failure, absence] = list_accelerators();
  const std::string& why = failure.empty() ? absence : failure;
  if (accelerators.empty()) {
    throw core::Error(core::ErrorKind::unavailable,
                      core::format("device {} was requested, but {} sees no CUDA device{}", name, libtorch_text(),
                                   why.empty() ? "" : ": " + why),
                      "check the driver with nvidia-smi and that LibTorch is a CUDA build, or use --device cpu");
  }
  const torch::Device device(name);
  if (device.index() >= static_cast<int>(accelerators.size())) {
    throw core::Error(core::ErrorKind::unavailable,
                      core::format("device {} was requested, but there are only {}", name, accelerators.size()),
                      "devices are numbered from 0");
  }
  try_to_compute(device);
  // Calls of this thread without a device must not create a context on the first one, which belongs to another
  // rank.
  c10::impl::VirtualGuardImpl(device.type()).setDevice(device);
  return device;
}

bool cpu_computes_float16() { return STOKER_TORCH_AT_LEAST(2, 4); }

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

DeviceMemory device_memory_by(const std::function<void(DeviceMemory&)>& read) noexcept {
  DeviceMemory memory;
  try {
    read(memory);
  } catch (const std::exception&) {  // called for a line of text, perhaps while another error is handled
  }
  return memory;
}

double free_memory_share(torch::Device device) {
  const DeviceMemory memory = device_memory(device);
  return memory.total_bytes > 0 ? static_cast<double>(memory.free_bytes) / static_cast<double>(memory.total_bytes) : 1;
}

std::string uuid_text(const char* bytes) {
  std::string text;
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += core::format("{:02x}", static_cast<unsigned>(static_cast<unsigned char>(bytes[i])));
  }
  return text;
}

CudaLibraries cuda_libraries() {
  if (!is_cuda_build()) return {};
  const long runtime = at::detail::getCUDAHooks().versionCUDART();
  CudaLibraries libraries{core::format("{}.{}", runtime / 1000, runtime % 1000 / 10), ""};
  if (!at::globalContext().hasCuDNN()) return libraries;
  const long cudnn = at::detail::getCUDAHooks().versionCuDNN();
  const long major = cudnn >= 90000 ? 10000 : 1000;  // its numbering changed with version 9
  libraries.cudnn = core::format("{}.{}.{}", cudnn / major, cudnn % major / 100, cudnn % 100);
  return libraries;
}

std::string computing_text(torch::Device device) {
  if (!device.is_cuda()) return "cpu, " + libtorch_text();
  const torch::Device one = device.has_index() ? device : c10::impl::VirtualGuardImpl(device.type()).getDevice();
  const core::AcceleratorFacts facts = facts_of(list_accelerators(), one);
  std::string text = core::format("{} ({}), {}", facts.name, facts.compute_capability, libtorch_text());
  if (at::globalContext().hasCuDNN()) text += core::format(", cuDNN {}", at::detail::getCUDAHooks().versionCuDNN());
  return text;
}

NoSearchScope::NoSearchScope() : searched_(at::globalContext().benchmarkCuDNN()) {
  at::globalContext().setBenchmarkCuDNN(false);
}

NoSearchScope::~NoSearchScope() { at::globalContext().setBenchmarkCuDNN(searched_); }

std::string libtorch_text() {
  return core::format("LibTorch {}.{}.{}, {} build", TORCH_VERSION_MAJOR, TORCH_VERSION_MINOR, TORCH_VERSION_PATCH,
                      is_cuda_build() ? "CUDA" : "CPU");
}

std::string short_text_of(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  return torch_error != nullptr ? torch_error->what_without_backtrace() : error.what();
}

bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  if (const auto* own = dynamic_cast<const core::Error*>(&error)) return own->kind() == core::ErrorKind::out_of_memory;
  if (dynamic_cast<const c10::Error*>(&error) == nullptr) return false;
  const std::string text = short_text_of(error);
  for (const char* words : {"out of memory", "can't allocate memory", "not enough memory", "CUBLAS_STATUS_ALLOC_FAILED",
                            "CUDNN_STATUS_ALLOC_FAILED", "CUBLAS_STATUS_NOT_INITIALIZED",
                            "NVML_SUCCESS =="}) {  // where NVML refuses the figures of the report that memory ran out
    if (text.find(words) != std::string::npos) return true;
  }
  return false;
}

bool is_out_of_memory(const std::exception& error, double free) {
  constexpr double kShort = 0.1;
  if (is_out_of_memory(error)) return true;
  if (free >= kShort || dynamic_cast<const c10::Error*>(&error) == nullptr) return false;
  const std::string text = short_text_of(error);
  for (const char* words : {"unable to find an engine to execute this computation",
                            "Unable to find a valid cuDNN algorithm to run convolution"}) {
    if (text.find(words) != std::string::npos) return true;
  }
  return false;
}

BlasFacts blas_of_path(const std::string& path) {
  BlasFacts facts;
  facts.path = path;
  const auto has = [&](const char* part) { return path.find(part) != std::string::npos; };
  if (has("openblas")) {
    facts.name = has("openmp")   ? "OpenBLAS with OpenMP threads"
                 : has("serial") ? "OpenBLAS without threads"
                                 : "OpenBLAS";
  } else if (has("mkl")) {
    facts.name = "Intel MKL";
  } else if (has("blis")) {
    facts.name = "BLIS";
  } else if (has("atlas")) {
    facts.name = "ATLAS";
  } else if (has("libtorch")) {
    facts.name = "inside LibTorch";
  } else {
    facts.reference = has("/blas/libblas.") || has("/libblas.so");  // Debian's libblas3, or one built from Netlib
    facts.name = facts.reference ? "reference BLAS" : "unknown";
  }
  return facts;
}

BlasFacts blas_facts() {
  BlasFacts facts;
  Dl_info info{};
  void* const function = ::dlsym(RTLD_DEFAULT, "sgemm_");
  if (function && ::dladdr(function, &info) != 0 && info.dli_fname) {
    char* const resolved = ::realpath(info.dli_fname, nullptr);
    facts = blas_of_path(resolved ? resolved : info.dli_fname);
    std::free(resolved);
  } else {
    facts.name = at::globalContext().hasMKL() ? "Intel MKL inside LibTorch" : "inside LibTorch";
  }
  facts.onednn = at::globalContext().hasMKLDNN();
  return facts;
}

}  // namespace stoker::engine
