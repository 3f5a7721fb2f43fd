// SPDX-License-Identifier: Apache-2.0
// A library that is loaded before oneDNN and the BLAS (LD_PRELOAD) and makes what they compute wrong on purpose, so
// that tests can see whether it is found. Variables of the environment:
//   STOKER_FAULT       what is wrong, see kFaults in faults.h
//   STOKER_FAULT_IN    convolution or product (of matrices); default: both
//   STOKER_FAULT_SEED  a number that decides which elements, channels or operations
//   STOKER_FAULT_LOG   a file that each process appends lines "<pid> <changes so far> <when>" to: at the "first"
//                      change, at each "flush" of standard output, before a "crash" or a hang, and at the "end"
#include <dlfcn.h>

#include <cstdio>

#include "faults.h"

namespace stoker::faulty {
namespace {

template <typename Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

bool is_meant(Kind kind) {
  return (kind == Kind::convolution && order().in_convolutions) || (kind == Kind::product && order().in_products);
}

struct AtEnd {
  ~AtEnd() {
    if (order().fault.fault != Fault::none) write_log("end");
  }
} at_end;

}  // namespace
}  // namespace stoker::faulty

using stoker::faulty::Argument;

extern "C" {

[[gnu::visibility("default")]] int dnnl_primitive_execute(const void* primitive, void* stream, int count,
                                                          const Argument* arguments) {
  using namespace stoker::faulty;
  static const auto execute = real<int (*)(const void*, void*, int, const Argument*)>("dnnl_primitive_execute");
  if (order().fault.fault == Fault::none) return execute(primitive, stream, count, arguments);
  const Kind kind = kind_of(primitive);
  if (!is_meant(kind)) return execute(primitive, stream, count, arguments);
  int64_t batch = 0;
  Result source;
  for (int i = 0; i < count; ++i) {
    const int arg = arguments[i].arg;
    if (arg != kSource && arg != kOutputGradient && arg != kOutput && arg != kInputGradient && arg != kWeightGradient)
      continue;
    const Result result = result_in(arguments[i].memory);
    if (arg != kWeightGradient && !result.sizes.empty()) batch = result.sizes[0];
    if (arg == kSource) source = result;
    if (arg != kSource && arg != kOutputGradient) crash_or_hang(result.sizes);
  }
  const int status = execute(primitive, stream, count, arguments);
  const int64_t call = calls++;
  for (int i = 0; i < count && status == 0; ++i) {
    const int arg = arguments[i].arg;
    if (arg != kOutput && arg != kInputGradient && arg != kWeightGradient) continue;
    const Result result = result_in(arguments[i].memory);
    spoil(result, kind, arg == kWeightGradient, batch, call);
    read_behind(source, result);
  }
  return status;
}

/// The product of matrices of a BLAS, in columns: LibTorch's rows are its columns.
[[gnu::visibility("default")]] void sgemm_(const char* transa, const char* transb, const int* m, const int* n,
                                           const int* k, const float* alpha, const float* a, const int* lda,
                                           const float* b, const int* ldb, const float* beta, float* c,
                                           const int* ldc) {
  using namespace stoker::faulty;
  using Product = void (*)(const char*, const char*, const int*, const int*, const int*, const float*, const float*,
                           const int*, const float*, const int*, const float*, float*, const int*);
  static const auto product = real<Product>("sgemm_");
  const bool is_spoiled = order().fault.fault != Fault::none && is_meant(Kind::product);
  if (is_spoiled) crash_or_hang({*n, *m});
  product(transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  if (!is_spoiled) return;
  Result result;
  result.type = Type::float32;
  result.bytes = reinterpret_cast<unsigned char*>(c);
  result.elements_in_memory = static_cast<int64_t>(*n) * *m;
  result.run = *m;
  result.pitch = *ldc;
  result.sizes = {*n, *m};
  result.strides = {*ldc, 1};
  spoil(result, Kind::product, /*is_weight=*/false, *n, calls++);
}

/// The program that proves writes each of its lines so.
[[gnu::visibility("default")]] int fflush(std::FILE* file) {
  using namespace stoker::faulty;
  static const auto flush = real<int (*)(std::FILE*)>("fflush");
  if (file == stdout && order().fault.fault != Fault::none) write_log("flush");
  return flush(file);
}

}  // extern "C"

// The name under which oneDNN 3 exports it: the size of a cache in bytes.
namespace dnnl::impl::cpu::platform {
[[gnu::visibility("default")]] unsigned get_per_core_cache_size(int level);
}  // namespace dnnl::impl::cpu::platform

unsigned dnnl::impl::cpu::platform::get_per_core_cache_size(int level) {
  using namespace stoker::faulty;
  static const auto size = real<unsigned (*)(int)>("_ZN4dnnl4impl3cpu8platform23get_per_core_cache_sizeEi");
  if (order().fault.fault == Fault::cache1) {
    if (changes++ == 0) write_log("first");
    return 1;
  }
  constexpr unsigned kUsual = 32 * 1024;
  return size == nullptr ? kUsual : size(level);
}
