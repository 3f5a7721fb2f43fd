// SPDX-License-Identifier: Apache-2.0
// Bytes as a safetensors file: a header whose tensors lie in the file without gap or overlap, or refused as
// data.
#include <string_view>

#include "core/error.h"
#include "engine/files/safetensors_header.h"
#include "fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace stoker::engine;
  try {
    const SafetensorsHeader header =
        parse_safetensors_header({reinterpret_cast<const char*>(bytes), size}, "fuzz.safetensors");
    uint64_t expected = 0;
    for (const TensorRecord& record : header.tensors) {
      FUZZ_CHECK(record.begin == expected && record.end >= record.begin);
      expected = record.end;
      uint64_t volume = safetensors_element_bytes(record.dtype);
      bool empty = false;
      for (const int64_t side : record.shape) {
        FUZZ_CHECK(side >= 0);
        empty = empty || side == 0;
        if (side != 0) FUZZ_CHECK(!__builtin_mul_overflow(volume, static_cast<uint64_t>(side), &volume));
      }
      FUZZ_CHECK(volume <= uint64_t{INT64_MAX});
      FUZZ_CHECK(record.end - record.begin == (empty ? 0 : volume));
    }
    FUZZ_CHECK(header.data_start <= size && expected == size - header.data_start);
  } catch (const stoker::core::Error& error) {
    FUZZ_CHECK(error.kind() == stoker::core::ErrorKind::data);
  }
  return 0;
}

/// Keeps the length of the header right while its text changes.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* bytes, size_t size, size_t max_size, unsigned int seed) {
  const size_t before = size;
  size = LLVMFuzzerMutate(bytes, size, max_size);
  if (before < 8 || size < 8 || stoker::fuzz::Choices(seed).one_in(4)) return size;
  // Approximately: the header ends at the last brace.
  size_t end = size;
  while (end > 8 && bytes[end - 1] != '}') --end;
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<uint8_t>(static_cast<uint64_t>(end - 8) >> (8 * i));
  return size;
}
