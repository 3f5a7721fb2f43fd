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
                            "CUDNN_STATUS_ALLOC_FAILED", "CUBLAS_STATUS_NOT_INITIALIZED"}) {
    if (text.find(words) != std::string::npos) return true;
  }
  return false;
}

bool is_out_of_memory(const std::exception& error, double free) {
  constexpr double kShort = 0.1;
  if (is_out_of_memory(error)) return true;
  if (free >= kShort || dynamic_cast<const c10::Error*>(&error) == nullptr) return false;
  const std::string text = short_text_of(error);
  for (const char* words : {"unable to find an engine to execute this computation",
                            "Unable to find a valid cuDNN algorithm to run convolution"}) {
    if (text.find(words) != std::string::npos) return true;
  }
  return false;
}

}  // namespace stoker::engine
