// SPDX-License-Identifier: Apache-2.0
// Bytes as a stored chunk of HDF5: content of the right size or a reason; and what is shuffled and deflated here comes
// back. The input is the filters (two bits each: none, deflate, shuffle), those that were skipped, the bytes of a
// number, the size of the chunk in two bytes, and the chunk.
#include <zlib.h>

#include <vector>

#include "data/container/sample_array.h"
#include "fuzz_target.h"

namespace {

using Bytes = std::vector<uint8_t>;
using stoker::data::ChunkFilter;

std::vector<ChunkFilter> filters_of(uint8_t choice) {
  std::vector<ChunkFilter> filters;
  bool deflated = false;
  for (; choice != 0; choice = static_cast<uint8_t>(choice >> 2)) {
    if ((choice & 3) == 1 && !deflated) filters.push_back(ChunkFilter::deflate);
    if ((choice & 3) == 2) filters.push_back(ChunkFilter::shuffle);
    deflated = deflated || (choice & 3) == 1;
  }
  return filters;
}

/// Byte 0 of all numbers, then byte 1 of all; bytes after the last whole number stay.
Bytes shuffled(const Bytes& plain, size_t element) {
  Bytes out = plain;
  const size_t numbers = plain.size() / element;
  for (size_t i = 0; i < numbers * element; ++i) out[i % element * numbers + i / element] = plain[i];
  return out;
}

Bytes deflated(const Bytes& plain) {
  Bytes out(::compressBound(static_cast<uLong>(plain.size())));
  auto written = static_cast<uLongf>(out.size());
  FUZZ_CHECK(::compress2(out.data(), &written, plain.data(), static_cast<uLong>(plain.size()), 1) == Z_OK);
  out.resize(written);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  constexpr size_t kHead = 5;
  if (size < kHead) return 0;
  const std::vector<ChunkFilter> filters = filters_of(bytes[0]);
  const uint32_t skipped = bytes[1];
  const int element = 1 << bytes[2] % 3;
  const size_t wanted = 1 + (bytes[3] | static_cast<size_t>(bytes[4]) << 8);
  const Bytes chunk(bytes + kHead, bytes + size);

  Bytes stored = chunk, content(wanted);
  const std::string reason = stoker::data::decode_chunk(filters, skipped, element, stored, content);
  if (reason.empty()) FUZZ_CHECK(content.size() == wanted);

  if (chunk.empty()) return 0;
  stored = chunk;
  for (size_t i = 0; i < filters.size(); ++i) {
    if ((skipped >> i & 1) != 0) continue;
    stored = filters[i] == ChunkFilter::deflate ? deflated(stored) : shuffled(stored, static_cast<size_t>(element));
  }
  content.assign(chunk.size(), 0);
  FUZZ_CHECK(stoker::data::decode_chunk(filters, skipped, element, stored, content).empty() && content == chunk);
  return 0;
}
