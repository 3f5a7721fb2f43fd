// SPDX-License-Identifier: Apache-2.0
// Which kernels this build has and this CPU runs. All are false in a build with -DSTOKER_KERNELS=OFF. Any thread.
#pragma once

#include <cstdint>
#include <functional>

/// Behind the parameters of a lambda that is given to call_at_widest().
#define STOKER_INLINED __attribute__((always_inline))

namespace stoker::kernels {

/// resample_rows_avx2.h and call_at_widest(): x86-64 with AVX2.
bool has_avx2();
/// conv_weight_gradient.h: x86-64 with AVX512-BF16 and without tiles (AMX), with which oneDNN is faster; GCC.
bool has_conv_weight_gradient();
/// optimizer_step.h: any CPU.
bool has_optimizer_step();

// How kernels spread their work over threads whatever library owns the threads.

/// Does pieces [begin, end) of the work; called from several threads at once, with other pieces each time.
using RangeWork = std::function<void(int64_t begin, int64_t end)>;

/// Calls `work` until pieces [0, count) are done, at least `grain` pieces in a call except the last, and returns then.
/// The modules that have tensors pass at::parallel_for. Results of kernels do not depend on how pieces are spread.
using ParallelFor = void (*)(int64_t count, int64_t grain, const RangeWork& work);

// Plain loops that are compiled twice: as the rest of the program, and for AVX2, which is chosen where the CPU has it.
// The bits are those of the plain loop: the compiler gets wider registers, and no fused multiply-add. On an AMD EPYC
// (Zen 5), GCC 12, images of 224 x 224 and of 32 x 32 pixels, times as fast as without: blending bytes 2.0 and 2.0,
// saturation 1.9 and 1.8, sharpness 1.6 and 1.7, Gaussian blur 1.7 and 1.6. has_avx2() is false without kernels.

#if defined(__x86_64__)
template <typename Loop>
__attribute__((target("avx2"))) void call_with_avx2(const Loop& loop) {
  loop();
}
#endif

/// Calls loop(), a lambda that is STOKER_INLINED and whose captures are values: a loop that writes bytes could change
/// what is captured by reference.
template <typename Loop>
void call_at_widest(const Loop& loop) {
#if defined(__x86_64__)
  if (has_avx2()) return call_with_avx2(loop);
#endif
  loop();
}

}  // namespace stoker::kernels
