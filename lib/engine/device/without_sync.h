// SPDX-License-Identifier: Apache-2.0
// States that work does not wait for the device; for programs of tests, which check it.
#pragma once

#include <c10/core/Device.h>

#include <functional>

namespace stoker::engine {

/// Calls `work`, in which nothing makes the calling thread wait for `device`. `train` believes it;
/// tests/hooks/train_with_hooks links a definition that throws Error{bug} where it is not so.
void without_sync(const c10::Device& device, const std::function<void()>& work);

}  // namespace stoker::engine
