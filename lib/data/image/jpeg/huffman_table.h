// SPDX-License-Identifier: Apache-2.0
// A Huffman code of a JPEG file as a table that gives code, run and value in one look.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace stoker::data {

/// How a file defines a code (ITU-T T.81, B.2.4.2): how many codes of each length there are, and what they
/// mean in order.
struct HuffmanCode {
  bool dc = false;                     ///< symbols are sizes of a difference; else run and size of a coefficient
  std::array<uint8_t, 17> counts{};    ///< [length] for lengths 1 to 16
  std::array<uint8_t, 256> symbols{};  ///< unused ones are 0
  bool operator==(const HuffmanCode& other) const {
    return dc == other.dc && counts == other.counts && symbols == other.symbols;
  }
};

/// What the next bits of a stream mean.
///
/// An entry of 32 bits is, from above: 16 bits of signed value, 1 bit `special`, 7 bits of how far the
/// coefficient index advances (run + 1), 8 bits of how many bits are used up. An entry that is special asks
/// for more: the end of a block, a value whose bits reach beyond the table, or a code that does.
class HuffmanTable {
 public:
  static constexpr int kBits = 10;
  static constexpr uint32_t kSpecial = 0x8000;
  static constexpr uint32_t kEndOfBlock = kSpecial;  ///< advance 0, in special entries
  static constexpr uint32_t kBad = 0;                ///< from find(): no such code
  static constexpr int kMaxBits = 16 + 15;           ///< that a code and its value take

  static int length_of(uint32_t entry) { return static_cast<int>(entry & 0xFF); }
  static int advance_of(uint32_t entry) { return static_cast<int>(entry >> 8 & 0x7F); }
  static int value_of(uint32_t entry) { return static_cast<int32_t>(entry) >> 16; }

  /// False when the counts make no code.
  bool build(const HuffmanCode& code);
  const HuffmanCode& code() const { return code_; }

  /// The entry for a bit buffer whose next bit is the topmost.
  uint32_t look(uint64_t buffer) const { return entries_[buffer >> (64 - kBits)]; }
  /// For a special entry: the whole meaning, as an entry that is not special, or kEndOfBlock with its length,
  /// or kBad. The buffer must hold kMaxBits bits.
  uint32_t find(uint64_t buffer) const;

 private:
  uint32_t entry_of(uint8_t symbol, int length, uint64_t buffer) const;

  std::array<uint32_t, 1 << kBits> entries_{};
  std::array<int32_t, 18> end_of_length_{};  ///< [length]: first code beyond those of this length
  std::array<int32_t, 17> symbol_offset_{};  ///< [length]: symbol index - code
  HuffmanCode code_;
};

}  // namespace stoker::data
