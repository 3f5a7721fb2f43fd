// SPDX-License-Identifier: Apache-2.0
// Bytes as the index of a shard: entries that lie inside the shard it describes, or refused as data; what is
// accepted has one form only.
#include <algorithm>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/hash.h"
#include "data/shard/shard_index.h"
#include "fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace stoker::data;
  try {
    const ShardIndex index = parse_shard_index(bytes, size, "fuzz.tar.index");
    for (size_t i = 0; i < index.entries.size(); ++i) {
      const ShardEntry& entry = index.entries[i];
      FUZZ_CHECK(entry.offset <= index.shard_bytes && entry.size <= index.shard_bytes - entry.offset);
      FUZZ_CHECK(entry.label >= -1);
      FUZZ_CHECK(!index.name(i).empty() && entry.name_end <= index.names.size());
    }
    FUZZ_CHECK(shard_index_text(index) == std::string(reinterpret_cast<const char*>(bytes), size));
  } catch (const stoker::core::Error& error) {
    FUZZ_CHECK(error.kind() == stoker::core::ErrorKind::data);
  }
  return 0;
}

/// Makes the digest at the end right again, and often the counts too, so that changes get past them.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* bytes, size_t size, size_t max_size, unsigned int seed) {
  constexpr size_t kHeader = 128, kEntry = 24, kDigest = 32;
  stoker::fuzz::Choices choices(seed);
  size = LLVMFuzzerMutate(bytes, size, max_size);
  if (size < kHeader + kDigest || choices.one_in(8)) return size;
  const size_t body = size - kHeader - kDigest;
  if (!choices.one_in(4)) {  // entries may grow into the names
    const size_t entries = std::min<size_t>(bytes[16], body / kEntry);
    for (size_t i = 0; i < 8; ++i) {
      bytes[16 + i] = static_cast<uint8_t>(entries >> (8 * i));
      bytes[24 + i] = static_cast<uint8_t>((body - entries * kEntry) >> (8 * i));
    }
  }
  const std::string digest = stoker::core::hash_hex({reinterpret_cast<const char*>(bytes), size - kDigest});
  std::copy(digest.begin(), digest.end(), bytes + size - kDigest);
  return size;
}
