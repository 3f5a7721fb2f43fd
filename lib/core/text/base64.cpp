// SPDX-License-Identifier: Apache-2.0
#include "core/text/base64.h"

#include <algorithm>

namespace stoker::core {

std::string base64(const std::vector<uint8_t>& bytes) {
  constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t there = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = uint32_t{bytes[i]} << 16;
    if (there > 1) group |= uint32_t{bytes[i + 1]} << 8;
    if (there > 2) group |= bytes[i + 2];
    for (size_t k = 0; k < 4; ++k) text += k <= there ? kLetters[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

}  // namespace stoker::core
