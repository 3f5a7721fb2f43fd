// SPDX-License-Identifier: Apache-2.0
// Which kernels this build has and this CPU runs. All are false in a build with -DSTOKER_KERNELS=OFF. Any thread.
#pragma once

namespace stoker::kernels {

/// resample_rows_avx2.h and widest.h: x86-64 with AVX2.
bool has_avx2();
/// conv_weight_gradient.h: x86-64 with AVX512-BF16 and without tiles (AMX), with which oneDNN is faster; GCC.
bool has_conv_weight_gradient();
/// optimizer_step.h: any CPU.
bool has_optimizer_step();

}  // namespace stoker::kernels
