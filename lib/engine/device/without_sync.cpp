// SPDX-License-Identifier: Apache-2.0
// Alone in its object file, so that a program with a definition of its own does not link this one.
#include "engine/device/without_sync.h"

namespace stoker::engine {

void without_sync(const c10::Device&, const std::function<void()>& work) { work(); }

}  // namespace stoker::engine
