// SPDX-License-Identifier: Apache-2.0
#include "spectrograms.h"

namespace stoker::cli {

bool write_spectrograms(const Workplace&) { return false; }

}  // namespace stoker::cli
