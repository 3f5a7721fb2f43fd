// SPDX-License-Identifier: Apache-2.0
#include "data/image/jpeg/entropy_decoder.h"

#include <algorithm>
#include <cstring>

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

/// The meaning of a symbol and the bits behind its code; the code is `length` bits at the top of the buffer.
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

namespace {

/// Zigzag order (T.81, figure A.6); runs that lead beyond the block end in its last place.
constexpr int kLongestRun = 16;
constexpr uint8_t kNaturalOrder[DCTSIZE2 + kLongestRun] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13,
    6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31,
    39, 46, 53, 60, 61, 54, 47, 55, 62, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63};

/// Differences add up; what leaves this range is left to libjpeg.
constexpr int32_t kLargestDc = 1 << 20;

bool has_byte_ff(uint64_t word) {
  constexpr uint64_t kOnes = 0x0101010101010101u, kTops = 0x8080808080808080u;
  return ((~word - kOnes) & word & kTops) != 0;
}

}  // namespace

__attribute__((always_inline)) inline void BitReader::refill() {
  if (end - next >= 8) {
    uint64_t word;
    std::memcpy(&word, next, 8);
    if (!has_byte_ff(word)) {
      // Bits beyond `left` are those of the next byte already: putting them there again changes nothing.
      buffer |= __builtin_bswap64(word) >> left;
      next += (63 - left) >> 3;
      left |= 56;
      return;
    }
  }
  *this = refilled_bytewise(*this);
}

__attribute__((noinline)) BitReader BitReader::refilled_bytewise(BitReader bits) {
  if (bits.left < 0) return bits;  // read past the end: whoever reads sees it
  while (bits.left <= 56 && bits.next < bits.end) {
    const uint64_t byte = *bits.next;
    if (byte == 0xFF) {
      if (bits.end - bits.next < 2 || bits.next[1] != 0) return bits;  // a marker
      ++bits.next;
    }
    ++bits.next;
    bits.buffer |= byte << (56 - bits.left);
    bits.left += 8;
  }
  return bits;
}

void BitReader::give_back() {
  for (; left >= 8; left -= 8) next -= next[-1] == 0 && next[-2] == 0xFF ? 2 : 1;
}

EntropyDecoder::EntropyDecoder()
#if defined(__x86_64__)
    : has_bmi2_(__builtin_cpu_supports("bmi2") != 0) {
#else
    : has_bmi2_(false) {
#endif
}

const HuffmanTable* EntropyDecoder::table_of(const JHUFF_TBL* defined, bool dc) {
  if (defined == nullptr) return nullptr;
  HuffmanCode code;
  code.dc = dc;
  size_t symbols = 0;
  for (size_t length = 1; length <= 16; ++length) symbols += code.counts[length] = defined->bits[length];
  if (symbols > code.symbols.size()) return nullptr;
  std::memcpy(code.symbols.data(), defined->huffval, symbols);
  size_t oldest = 0;
  for (size_t i = 0; i < kTables; ++i) {
    if (last_use_[i] != 0 && tables_[i].code() == code) {
      last_use_[i] = images_;
      return &tables_[i];
    }
    if (last_use_[i] < last_use_[oldest]) oldest = i;
  }
  last_use_[oldest] = 0;
  if (!tables_[oldest].build(code)) return nullptr;
  last_use_[oldest] = images_;
  return &tables_[oldest];
}

#ifdef STOKER_HAS_ENTROPY_STAGE

namespace {

bool is_lossless(const jpeg_decompress_struct& codec) {
#if LIBJPEG_TURBO_VERSION_NUMBER >= 3000000
  return codec.master->lossless != 0;
#else
  static_cast<void>(codec);
  return false;  // such files are refused before
#endif
}

/// Columns beside the region are read over, not kept: libjpeg has no use for them.
bool is_wanted(const jpeg_decompress_struct& codec, uint32_t column) {
  return column >= codec.master->first_iMCU_col && column <= codec.master->last_iMCU_col;
}

bool has_several_scans(const jpeg_decompress_struct& codec) { return codec.inputctl->has_multiple_scans != 0; }

}  // namespace

void EntropyDecoder::take_over(jpeg_decompress_struct& codec, McuReader reader) { codec.entropy->decode_mcu = reader; }

#else

namespace {

bool is_lossless(const jpeg_decompress_struct&) { return true; }  // nothing is for this stage
bool has_several_scans(const jpeg_decompress_struct&) { return true; }
bool is_wanted(const jpeg_decompress_struct&, uint32_t) { return true; }

}  // namespace

void EntropyDecoder::take_over(jpeg_decompress_struct&, McuReader) {}

#endif

bool EntropyDecoder::start(const jpeg_decompress_struct& codec) {
  if (codec.progressive_mode || codec.arith_code || codec.data_precision != 8 || is_lossless(codec)) return false;
  // libjpeg has read all of several scans by now.
  if (has_several_scans(codec) || codec.comps_in_scan != codec.num_components) return false;
  ++images_;
  blocks_in_mcu_ = codec.blocks_in_MCU;
  for (int i = 0; i < blocks_in_mcu_; ++i) {
    BlockPlan& block = plan_[static_cast<size_t>(i)];
    block.component = codec.MCU_membership[i];
    const jpeg_component_info& component = *codec.cur_comp_info[block.component];
    block.dc = table_of(codec.dc_huff_tbl_ptrs[component.dc_tbl_no], true);
    block.ac = table_of(codec.ac_huff_tbl_ptrs[component.ac_tbl_no], false);
    if (block.dc == nullptr || block.ac == nullptr) return false;
  }
  bits_ = {};
  bits_.next = codec.src->next_input_byte;
  bits_.end = bits_.next + codec.src->bytes_in_buffer;
  last_dc_.fill(0);
  column_ = 0;
  restart_interval_ = mcus_to_restart_ = codec.restart_interval;
  next_restart_ = 0;
  return true;
}

/// A restart marker must follow at once.
bool EntropyDecoder::restart() {
  bits_.give_back();
  if (bits_.end - bits_.next < 2 || bits_.next[0] != 0xFF || bits_.next[1] != JPEG_RST0 + next_restart_) return false;
  bits_.next += 2;
  bits_.buffer = 0;
  bits_.left = 0;
  last_dc_.fill(0);
  mcus_to_restart_ = restart_interval_;
  next_restart_ = (next_restart_ + 1) % 8;
  return true;
}

template <bool kStore>
__attribute__((always_inline)) inline bool EntropyDecoder::read_blocks_inline(JBLOCKROW* blocks) {
  using Table = HuffmanTable;
  BitReader bits = bits_;  // a copy that the compiler can keep in registers
  for (int i = 0; i < blocks_in_mcu_; ++i) {
    const BlockPlan& plan = plan_[static_cast<size_t>(i)];
    const Table& ac = *plan.ac;
    bits.refill();
    uint32_t entry = plan.dc->look(bits.buffer);
    if ((entry & Table::kSpecial) != 0) entry = plan.dc->find(bits.buffer);
    if (entry == Table::kBad) return false;
    bits.use(Table::length_of(entry));
    int32_t& last_dc = last_dc_[static_cast<size_t>(plan.component)];
    last_dc += Table::value_of(entry);
    if (last_dc > kLargestDc || last_dc < -kLargestDc) return false;
    JCOEF* const block = kStore ? *blocks[i] : nullptr;
    if (kStore) block[0] = static_cast<JCOEF>(last_dc);
    const auto take = [&](uint32_t found, int& k) {
      bits.use(Table::length_of(found));
      k += Table::advance_of(found);
      if (kStore) block[kNaturalOrder[k]] = static_cast<JCOEF>(Table::value_of(found));
    };
    int k = 0;
    do {
      bits.refill();
      entry = ac.look(bits.buffer);
      // Two whole entries and one that is not fit what a refill gives: 2 * kBits + kMaxBits <= 56.
      static_assert(2 * Table::kBits + Table::kMaxBits <= 56);
      if ((entry & Table::kSpecial) == 0) {
        take(entry, k);
        if (k >= DCTSIZE2 - 1) break;
        entry = ac.look(bits.buffer);
        if ((entry & Table::kSpecial) == 0) {
          take(entry, k);
          if (k >= DCTSIZE2 - 1) break;
          entry = ac.look(bits.buffer);
        }
      }
      if ((entry & Table::kSpecial) != 0) {
        if (Table::advance_of(entry) != 0) entry = ac.find(bits.buffer);
        if (entry == Table::kBad) return false;
        if ((entry & Table::kSpecial) != 0) {  // the end of the block
          bits.use(Table::length_of(entry));
          break;
        }
      }
      take(entry, k);
    } while (k < DCTSIZE2 - 1);
    if (k >= DCTSIZE2 || bits.left < 0) return false;
  }
  bits_ = bits;
  return true;
}

template <bool kStore>
bool EntropyDecoder::read_blocks(JBLOCKROW* blocks) {
  return read_blocks_inline<kStore>(blocks);
}

/// With shifts by any register.
template <bool kStore>
#if defined(__x86_64__)
__attribute__((target("bmi2")))
#endif
bool EntropyDecoder::read_blocks_bmi2(JBLOCKROW* blocks) {
  return read_blocks_inline<kStore>(blocks);
}

bool EntropyDecoder::read_mcu(const jpeg_decompress_struct& codec, JBLOCKROW* blocks) {
  if (restart_interval_ != 0) {
    if (mcus_to_restart_ == 0 && !restart()) return false;
    --mcus_to_restart_;
  }
  const bool inside = is_wanted(codec, column_);
  if (++column_ == codec.MCUs_per_row) column_ = 0;
  if (blocks != nullptr && inside) return has_bmi2_ ? read_blocks_bmi2<true>(blocks) : read_blocks<true>(blocks);
  return has_bmi2_ ? read_blocks_bmi2<false>(blocks) : read_blocks<false>(blocks);
}

bool EntropyDecoder::hand_back(jpeg_decompress_struct& codec) {
  bits_.give_back();
  const uint64_t rest = bits_.left > 0 ? bits_.buffer >> (64 - bits_.left) : 0;
  ended_in_ones_ = bits_.left >= 0 && rest == (uint64_t{1} << bits_.left) - 1;
  ended_well_ = ended_in_ones_ || (bits_.left >= 0 && rest == 0);  // some write zeros
  const bool is_stuffed = bits_.next[-1] == 0 && bits_.next[-2] == 0xFF;
  ended_before_others_ = is_stuffed || bits_.next[-1] != (bits_.next < bits_.end ? bits_.next[0] : 0);
  if (bits_.end - bits_.next < 2 || bits_.next[0] != 0xFF || bits_.next[1] != JPEG_EOI) return false;
  codec.src->next_input_byte = bits_.next;
  codec.src->bytes_in_buffer = static_cast<size_t>(bits_.end - bits_.next);
  return true;
}

}  // namespace stoker::data
