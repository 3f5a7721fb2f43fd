// SPDX-License-Identifier: Apache-2.0
#include "data/container/chunk_codec.h"

#include <zlib.h>

#include <new>

#include "core/format.h"

namespace stoker::data {
namespace {

/// Shuffled: first byte 0 of all numbers, then byte 1 of all, and so on.
template <size_t kBytes>
void unshuffle(const uint8_t* shuffled, size_t numbers, uint8_t* out) {
  for (size_t i = 0; i < numbers; ++i) {
    for (size_t b = 0; b < kBytes; ++b) out[i * kBytes + b] = shuffled[b * numbers + i];
  }
}

/// Bytes after the last whole number are not shuffled.
void unshuffle(const std::vector<uint8_t>& shuffled, int element_bytes, std::vector<uint8_t>& out) {
  out = shuffled;
  const size_t numbers = shuffled.size() / static_cast<size_t>(element_bytes);
  if (element_bytes == 4) {
    unshuffle<4>(shuffled.data(), numbers, out.data());
  } else {
    unshuffle<2>(shuffled.data(), numbers, out.data());
  }
}

std::string inflate_whole(const std::vector<uint8_t>& stored, std::vector<uint8_t>& content) {
  auto written = static_cast<uLongf>(content.size());
  const int result = ::uncompress(content.data(), &written, stored.data(), static_cast<uLong>(stored.size()));
  if (result == Z_MEM_ERROR) throw std::bad_alloc();
  if (result == Z_OK && written == content.size()) return "";
  if (result == Z_OK) {
    return core::format("the chunk inflates to {} bytes instead of {}", written, content.size());
  }
  return result == Z_BUF_ERROR ? "the deflate stream of the chunk is cut short or too long"
                               : "the deflate stream of the chunk is damaged";
}

}  // namespace

std::string decode_chunk(const std::vector<ChunkFilter>& filters, uint32_t skipped, int element_bytes,
                         std::vector<uint8_t>& stored, std::vector<uint8_t>& content) {
  const size_t wanted = content.size();
  for (size_t i = filters.size(); i-- > 0;) {
    if ((skipped >> i & 1) != 0) continue;
    if (filters[i] == ChunkFilter::deflate) {
      content.resize(wanted);
      if (std::string cause = inflate_whole(stored, content); !cause.empty()) return cause;
    } else {
      if (element_bytes == 1) continue;  // shuffling single bytes changes nothing
      unshuffle(stored, element_bytes, content);
    }
    stored.swap(content);
  }
  stored.swap(content);
  if (content.size() == wanted) return "";
  return core::format("the chunk has {} bytes instead of {}", content.size(), wanted);
}

}  // namespace stoker::data
