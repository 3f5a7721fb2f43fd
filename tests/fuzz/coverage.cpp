// SPDX-License-Identifier: Apache-2.0
// Edges as AFL counts them: places hashed to a map of counters, an edge being two places in a row, counters
// sorted into classes (1, 2, 3, 4-7, ...). This file itself is compiled without instrumentation.
#include "coverage.h"

#include <cstring>

#include "fuzz_target.h"

namespace stoker::fuzz {
namespace {

constexpr size_t kPlaces = 1 << 16, kComparisons = 512;

uint8_t counters[kPlaces];
uint8_t classes_seen[kPlaces];  ///< one bit per count class
uint64_t previous_place = 0;
size_t edges_seen = 0;

Comparison comparisons[kComparisons];
uint64_t comparison_count = 0;

uint8_t class_of(uint8_t count) {
  if (count <= 3) return static_cast<uint8_t>(1u << (count - 1));
  return count < 8 ? 8 : count < 16 ? 16 : count < 32 ? 32 : count < 128 ? 64 : 128;
}

void record_place(uintptr_t address) {
  // Relative to code of ours, since the program is loaded elsewhere each time.
  const uint64_t offset = address - reinterpret_cast<uintptr_t>(&LLVMFuzzerTestOneInput);
  const uint64_t place = offset * 0x9E3779B97F4A7C15 >> 48;
  uint8_t& counter = counters[(place ^ previous_place) % kPlaces];
  if (counter != 255) ++counter;
  previous_place = place >> 1;
}

void record_comparison(uint64_t left, uint64_t right, int bytes) {
  if (left == right) return;
  comparisons[comparison_count++ % kComparisons] = {left, right, bytes};
}

}  // namespace

void start_coverage() {
  std::memset(counters, 0, sizeof counters);
  previous_place = 0;
}

size_t take_new_coverage() {
  size_t fresh = 0;
  for (size_t start = 0; start < kPlaces; start += 8) {
    uint64_t word;
    std::memcpy(&word, counters + start, sizeof word);
    if (word == 0) continue;
    for (size_t i = start; i < start + 8; ++i) {
      if (counters[i] == 0) continue;
      const uint8_t count_class = class_of(counters[i]);
      if ((classes_seen[i] & count_class) != 0) continue;
      if (classes_seen[i] == 0) ++edges_seen;
      classes_seen[i] |= count_class;
      ++fresh;
    }
  }
  return fresh;
}

size_t covered_edges() { return edges_seen; }

Comparison recent_comparison(uint64_t which) {
  const uint64_t held = comparison_count < kComparisons ? comparison_count : kComparisons;
  return held == 0 ? Comparison{} : comparisons[which % held];
}

}  // namespace stoker::fuzz

// The names that the compiler calls; a switch gives its cases after two words: how many, and how many bits.
extern "C" {
void __sanitizer_cov_trace_pc() {
  stoker::fuzz::record_place(reinterpret_cast<uintptr_t>(__builtin_return_address(0)));
}
void __sanitizer_cov_trace_cmp1(uint8_t a, uint8_t b) { stoker::fuzz::record_comparison(a, b, 1); }
void __sanitizer_cov_trace_cmp2(uint16_t a, uint16_t b) { stoker::fuzz::record_comparison(a, b, 2); }
void __sanitizer_cov_trace_cmp4(uint32_t a, uint32_t b) { stoker::fuzz::record_comparison(a, b, 4); }
void __sanitizer_cov_trace_cmp8(uint64_t a, uint64_t b) { stoker::fuzz::record_comparison(a, b, 8); }
void __sanitizer_cov_trace_const_cmp1(uint8_t a, uint8_t b) { stoker::fuzz::record_comparison(a, b, 1); }
void __sanitizer_cov_trace_const_cmp2(uint16_t a, uint16_t b) { stoker::fuzz::record_comparison(a, b, 2); }
void __sanitizer_cov_trace_const_cmp4(uint32_t a, uint32_t b) { stoker::fuzz::record_comparison(a, b, 4); }
void __sanitizer_cov_trace_const_cmp8(uint64_t a, uint64_t b) { stoker::fuzz::record_comparison(a, b, 8); }
void __sanitizer_cov_trace_cmpf(float, float) {}
void __sanitizer_cov_trace_cmpd(double, double) {}
void __sanitizer_cov_trace_switch(uint64_t value, void* table) {
  const auto* const cases = static_cast<const uint64_t*>(table);
  for (uint64_t i = 0; i < cases[0]; ++i) {
    stoker::fuzz::record_comparison(value, cases[2 + i], static_cast<int>(cases[1] / 8));
  }
}
}
