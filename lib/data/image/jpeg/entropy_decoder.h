// SPDX-License-Identifier: Apache-2.0
// The Huffman-coded blocks of a baseline JPEG, read faster than libjpeg does: it takes the place of libjpeg's
// own stage, which takes four fifths of the time of a decode.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "data/image/jpeg/jpeg_library.h"

namespace stoker::data {

// A Huffman code of a JPEG file as a table that gives code, run and value in one look.

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

/// The meaning of the next bits of a stream.
///
/// An entry of 32 bits is, from above: 16 bits of signed value, 1 bit `special`, 7 bits of how far the
/// coefficient index advances (run + 1), 8 bits of how many bits are used up. A special entry stands
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

/// The next bits of entropy-coded bytes. Stops at a marker and at the end: what is read from there on is 0,
/// and `left` goes below 0.
struct BitReader {
  uint64_t buffer = 0;  ///< the next bit is the topmost
  int left = 0;         ///< valid bits
  const uint8_t* next = nullptr;
  const uint8_t* end = nullptr;

  /// Afterwards there are at least 56 bits, or all that are left.
  void refill();
  /// refill() where an FF or the end is near. By value, so that no address of a reader in use is taken: it then stays
  /// in registers.
  static BitReader refilled_bytewise(BitReader bits);
  void use(int bits) {
    buffer <<= bits;
    left -= bits;
  }
  /// Gives whole bytes that are not used up back: `next` is then the first one unused.
  void give_back();
};

/// The function that libjpeg calls for each MCU: jpeg_entropy_decoder::decode_mcu.
using McuReader = boolean (*)(j_decompress_ptr codec, JBLOCKROW* blocks);

/// One per worker: tables are kept from image to image, since many share theirs.
///
/// It raises no errors: where a file looks wrong it returns false, and the caller decodes the file again with libjpeg's
/// own stage, which alone decides whether a file is good. What it accepts, libjpeg accepts with the same coefficients.
class EntropyDecoder {
 public:
  EntropyDecoder();
  /// Call after jpeg_start_decompress(). False when the file is not for it, or this build has no stage of its own: the
  /// decode then continues as it is.
  bool start(const jpeg_decompress_struct& codec);
  /// Makes libjpeg call `reader`, which calls read_mcu(), instead of its own stage; after start().
  static void take_over(jpeg_decompress_struct& codec, McuReader reader);
  /// As jpeg_entropy_decoder::decode_mcu: one MCU into zeroed `blocks`, or past it when `blocks` is null.
  /// False: it has given up.
  bool read_mcu(const jpeg_decompress_struct& codec, JBLOCKROW* blocks);
  /// Passes the position in the input to libjpeg; call when all blocks have been. False: it has given up, since
  /// something other than the end marker follows.
  bool hand_back(jpeg_decompress_struct& codec);
  /// After hand_back(), whatever it returned: the last block ended in a byte whose other bits are padding. Where
  /// something else follows the blocks of such a stream, it is not a part of them.
  bool ended_well() const { return ended_well_; }
  /// As ended_well(), for bits of 1 alone.
  bool ended_in_ones() const { return ended_in_ones_; }
  /// After hand_back(): the last byte of the blocks is unlike the next one, so that no block was read from a run of one
  /// byte behind them; where nothing follows, it is not 0.
  bool ended_before_others() const { return ended_before_others_; }
  /// After hand_back(): the first byte that is not a part of the blocks.
  const uint8_t* behind() const { return bits_.next; }

 private:
  struct BlockPlan {
    const HuffmanTable* dc = nullptr;
    const HuffmanTable* ac = nullptr;
    int component = 0;
  };

  const HuffmanTable* table_of(const JHUFF_TBL* defined, bool dc);
  bool restart();
  template <bool kStore>
  bool read_blocks_inline(JBLOCKROW* blocks);
  template <bool kStore>
  bool read_blocks(JBLOCKROW* blocks);
  template <bool kStore>
  bool read_blocks_bmi2(JBLOCKROW* blocks);

  static constexpr size_t kTables = 8;  // a scan of four components can use as many

  BitReader bits_;
  std::array<BlockPlan, D_MAX_BLOCKS_IN_MCU> plan_;
  int blocks_in_mcu_ = 0;
  std::array<int32_t, MAX_COMPS_IN_SCAN> last_dc_{};
  uint32_t column_ = 0;  ///< column of the next MCU
  uint32_t restart_interval_ = 0, mcus_to_restart_ = 0, next_restart_ = 0;
  std::array<HuffmanTable, kTables> tables_;
  std::array<uint64_t, kTables> last_use_{};  ///< image number; 0: empty
  uint64_t images_ = 0;
  bool ended_well_ = false, ended_in_ones_ = false, ended_before_others_ = false;
  const bool has_bmi2_;
};

}  // namespace stoker::data
