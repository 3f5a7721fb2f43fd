// SPDX-License-Identifier: Apache-2.0
// Stands for resample_rows_avx2 in a build with -DSTOKER_KERNELS=OFF, and for CPUs that are not x86-64.
#include "core/error.h"
#include "kernels/cpu.h"
#include "kernels/resample_rows_avx2.h"

namespace stoker::kernels {

bool has_avx2() { return false; }

void narrow_four_rows_avx2(const uint8_t*, int64_t, const PairedTaps&, int, uint8_t*, int64_t) {
  throw core::Error(core::ErrorKind::bug, "this build has no kernels of its own");
}
void merge_rows_avx2(const uint8_t*, int64_t, const int32_t*, int, int64_t, uint8_t*) {
  throw core::Error(core::ErrorKind::bug, "this build has no kernels of its own");
}

}  // namespace stoker::kernels
