// SPDX-License-Identifier: Apache-2.0
// The one place where differences between LibTorch releases are handled: autocast's names changed in 2.4. Everything
// else in this module is written against what 1.13 and 2.x share.
#pragma once

#include <ATen/autocast_mode.h>
#include <torch/types.h>
#include <torch/version.h>

#define STOKER_TORCH_AT_LEAST(major, minor) \
  (TORCH_VERSION_MAJOR > (major) || (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))

namespace stoker::engine::compat {

inline bool autocast_enabled(at::DeviceType device) {
#if STOKER_TORCH_AT_LEAST(2, 4)
  return at::autocast::is_autocast_enabled(device);
#else
  return device == at::kCPU ? at::autocast::is_cpu_enabled() : at::autocast::is_enabled();
#endif
}

inline void set_autocast_enabled(at::DeviceType device, bool enabled) {
#if STOKER_TORCH_AT_LEAST(2, 4)
  at::autocast::set_autocast_enabled(device, enabled);
#else
  device == at::kCPU ? at::autocast::set_cpu_enabled(enabled) : at::autocast::set_enabled(enabled);
#endif
}

inline at::ScalarType autocast_dtype(at::DeviceType device) {
#if STOKER_TORCH_AT_LEAST(2, 4)
  return at::autocast::get_autocast_dtype(device);
#else
  return device == at::kCPU ? at::autocast::get_autocast_cpu_dtype() : at::autocast::get_autocast_gpu_dtype();
#endif
}

inline void set_autocast_dtype(at::DeviceType device, at::ScalarType dtype) {
#if STOKER_TORCH_AT_LEAST(2, 4)
  at::autocast::set_autocast_dtype(device, dtype);
#else
  device == at::kCPU ? at::autocast::set_autocast_cpu_dtype(dtype) : at::autocast::set_autocast_gpu_dtype(dtype);
#endif
}

}  // namespace stoker::engine::compat
