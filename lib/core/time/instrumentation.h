// SPDX-License-Identifier: Apache-2.0
// Whether the program measures itself: clocks of updates and samples, and who listens to them.
#pragma once

namespace stoker::core {

/// Always true in `train`. tests/hooks links another definition, which returns false during some updates, into a
/// program that reports what measuring costs. Any thread.
bool is_instrumented();

}  // namespace stoker::core
