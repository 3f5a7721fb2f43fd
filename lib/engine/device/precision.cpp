// SPDX-License-Identifier: Apache-2.0
#include "engine/device/precision.h"

#include "engine/device/torch_compat.h"

namespace stoker::engine {

AutocastScope::AutocastScope(const Precision& precision)
    : device_(precision.device.type()),
      was_enabled_(compat::autocast_enabled(device_)),
      was_dtype_(compat::autocast_dtype(device_)) {
  compat::set_autocast_enabled(device_, precision.autocast);
  if (precision.autocast) compat::set_autocast_dtype(device_, precision.dtype);
  at::autocast::increment_nesting();
}

AutocastScope::~AutocastScope() {
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  compat::set_autocast_dtype(device_, was_dtype_);
  compat::set_autocast_enabled(device_, was_enabled_);
}

NoAutocastCacheScope::NoAutocastCacheScope() : was_enabled_(at::autocast::is_autocast_cache_enabled()) {
  at::autocast::set_autocast_cache_enabled(false);
}

NoAutocastCacheScope::~NoAutocastCacheScope() { at::autocast::set_autocast_cache_enabled(was_enabled_); }

}  // namespace stoker::engine
