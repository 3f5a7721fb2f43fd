// SPDX-License-Identifier: Apache-2.0
// Bytes as an HDF5 file whose B-tree of chunks is walked: chunks of the right rank, no more than there may be, or
// refused as data. The input is the number of dimensions, the object header's address in two bytes, and the file.
#include <vector>

#include "core/error.h"
#include "data/container/hdf5_chunks.h"
#include "fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace stoker::data;
  constexpr size_t kHead = 3;
  constexpr uint64_t kMaxChunks = 4;
  if (size < kHead) return 0;
  const size_t rank = 1 + bytes[0] % 8;
  const uint64_t header = bytes[1] | static_cast<uint64_t>(bytes[2]) << 8;
  const MemoryBytes file("fuzz.h5", bytes + kHead, size - kHead);
  uint64_t chunks = 0, sum = 0;
  try {
    const bool known =
        visit_chunk_tree(file, header, rank, kMaxChunks, [&](const auto& begin, const ChunkPlace& place) {
          FUZZ_CHECK(begin.size() == rank);
          FUZZ_CHECK(++chunks <= kMaxChunks);
          for (const uint64_t at : begin) sum += at;  // every value is looked at
          sum += place.offset + place.bytes + place.skipped_filters;
        });
    FUZZ_CHECK(known || chunks == 0);
    FUZZ_CHECK(sum != ~uint64_t{0} || chunks > 0);
  } catch (const stoker::core::Error& error) {
    FUZZ_CHECK(error.kind() == stoker::core::ErrorKind::data);
  }
  return 0;
}
