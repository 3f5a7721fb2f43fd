// SPDX-License-Identifier: Apache-2.0
// Bounds-checked reading of untrusted bytes: what lies outside reads as zero.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace stoker::data {

class ByteView {
 public:
  ByteView(const uint8_t* bytes, uint64_t size) : bytes_(bytes), size_(size) {}

  uint64_t size() const { return size_; }
  const uint8_t* data() const { return bytes_; }
  bool has(uint64_t at, uint64_t count) const { return at <= size_ && count <= size_ - at; }
  uint32_t u8(uint64_t at) const { return has(at, 1) ? bytes_[at] : 0; }
  uint32_t big16(uint64_t at) const { return u8(at) << 8 | u8(at + 1); }
  uint32_t big32(uint64_t at) const { return big16(at) << 16 | big16(at + 2); }
  uint32_t little16(uint64_t at) const { return u8(at) | u8(at + 1) << 8; }
  uint32_t little24(uint64_t at) const { return little16(at) | u8(at + 2) << 16; }
  uint32_t little32(uint64_t at) const { return little16(at) | little16(at + 2) << 16; }
  bool matches(uint64_t at, std::string_view text) const {
    return has(at, text.size()) && std::memcmp(bytes_ + at, text.data(), text.size()) == 0;
  }
  /// The part from `at` on, at most `count` bytes long.
  ByteView part(uint64_t at, uint64_t count) const {
    if (at >= size_) return {bytes_, 0};
    return {bytes_ + at, count < size_ - at ? count : size_ - at};
  }

 private:
  const uint8_t* bytes_;
  uint64_t size_;
};

}  // namespace stoker::data
