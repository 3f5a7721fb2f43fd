// SPDX-License-Identifier: Apache-2.0
// Where there is no oneDNN 2.x: nothing is possible.
#include "kernels/cpu.h"
#include "kernels/winograd.h"

namespace stoker::kernels {

bool has_winograd() { return false; }

std::shared_ptr<const WinogradConv> WinogradConv::of(const WinogradShape&) { return nullptr; }

}  // namespace stoker::kernels
