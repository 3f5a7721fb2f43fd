// SPDX-License-Identifier: Apache-2.0
// The parts of CUDA that NCCL needs, apart from NCCL, so that its use can be tried without a GPU.
#pragma once

#include <c10/core/Device.h>
#include <driver_types.h>

#include <functional>

namespace stoker::engine {

/// The stream that the calling thread queues work of `device` in.
cudaStream_t current_stream(const c10::Device& device);
/// Whether all that is queued there is done. Throws c10::Error when the device has failed.
bool is_current_stream_idle(const c10::Device& device);
/// Calls `work` with `device` as the current one.
void with_device(const c10::Device& device, const std::function<void()>& work);

}  // namespace stoker::engine
