// SPDX-License-Identifier: Apache-2.0
#include "data/image/jpeg/huffman_table.h"

namespace stoker::data {
namespace {

/// The number that `size` bits stand for (T.81, F.2.2.1): those that begin with 0 are negative.
int extended(uint32_t bits, int size) {
  return size == 0 || bits >> (size - 1) != 0 ? static_cast<int>(bits) : static_cast<int>(bits) - (1 << size) + 1;
}

uint32_t made_entry(int value, int advance, int length) {
  return static_cast<uint32_t>(value) << 16 | static_cast<uint32_t>(advance) << 8 | static_cast<uint32_t>(length);
}

}  // namespace

/// What a symbol and the bits behind its code mean; the code is `length` bits at the top of the buffer.
uint32_t HuffmanTable::entry_of(uint8_t symbol, int length, uint64_t buffer) const {
  const int run = code_.dc ? 0 : symbol >> 4, size = code_.dc ? symbol : symbol & 15;
  if (size == 0 && !code_.dc && run != 15) return kEndOfBlock | static_cast<uint32_t>(length);
  const auto bits = size == 0 ? 0 : static_cast<uint32_t>(buffer << length >> (64 - size));
  return made_entry(extended(bits, size), run + 1, length + size);
}

bool HuffmanTable::build(const HuffmanCode& code) {
  code_ = code;
  entries_.fill(kSpecial | 1 << 8);
  int32_t next = 0;
  int index = 0;
  for (int length = 1; length <= 16; ++length) {
    symbol_offset_[static_cast<size_t>(length)] = index - next;
    const int count = code_.counts[static_cast<size_t>(length)];
    if (next + count > 1 << length || index + count > 256) return false;
    for (int i = 0; i < count; ++i, ++next, ++index) {
      const uint8_t symbol = code_.symbols[static_cast<size_t>(index)];
      if (code_.dc && symbol > 15) return false;
      if (length > kBits) continue;
      // Every filling of the bits behind the code.
      const int free = kBits - length;
      for (int filling = 0; filling < 1 << free; ++filling) {
        const auto at = static_cast<uint32_t>(next << free | filling);
        const uint32_t entry = entry_of(symbol, length, uint64_t{at} << (64 - kBits));
        if (length_of(entry) <= kBits) entries_[at] = entry;
      }
    }
    end_of_length_[static_cast<size_t>(length)] = next;
    next <<= 1;
  }
  return true;
}

__attribute__((noinline)) uint32_t HuffmanTable::find(uint64_t buffer) const {
  for (int length = 1; length <= 16; ++length) {
    const auto code = static_cast<int32_t>(buffer >> (64 - length));
    if (code >= end_of_length_[static_cast<size_t>(length)]) continue;
    return entry_of(code_.symbols[static_cast<size_t>(code + symbol_offset_[static_cast<size_t>(length)])], length,
                    buffer);
  }
  return kBad;
}

}  // namespace stoker::data
