// SPDX-License-Identifier: Apache-2.0
#include "engine/device/out_of_memory.h"

#include <c10/util/Exception.h>

#include <new>

#include "core/error.h"

namespace stoker::engine {

std::string short_text_of(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  return torch_error != nullptr ? torch_error->what_without_backtrace() : error.what();
}

bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  if (const auto* own = dynamic_cast<const core::Error*>(&error)) return own->kind() == core::ErrorKind::out_of_memory;
  if (dynamic_cast<const c10::Error*>(&error) == nullptr) return false;
  const std::string text = short_text_of(error);
  for (const char* words : {"out of memory", "can't allocate memory", "not enough memory", "CUBLAS_STATUS_ALLOC_FAILED",
                            "CUDNN_STATUS_ALLOC_FAILED"}) {
    if (text.find(words) != std::string::npos) return true;
  }
  return false;
}

}  // namespace stoker::engine
