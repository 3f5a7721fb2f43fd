// SPDX-License-Identifier: Apache-2.0
// Alone in its object file, so that a program with a definition of its own does not link this one.
#include "core/time/instrumentation.h"

namespace stoker::core {

bool is_instrumented() { return true; }

}  // namespace stoker::core
