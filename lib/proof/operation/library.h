// SPDX-License-Identifier: Apache-2.0
// Which library computes an operation, and of which version.
#pragma once

#include <string>

#include "proof/operation/operation.h"

namespace stoker::proof {

/// "oneDNN 2.7.3", "OpenBLAS with OpenMP threads", "LibTorch 1.13.0, CPU build": as LibTorch chooses.
std::string library_of(const Operation& operation);

/// "oneDNN 2.7.3"; "oneDNN" where it cannot be asked, "" where LibTorch has none.
std::string onednn_text();

}  // namespace stoker::proof
