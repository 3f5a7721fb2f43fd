// SPDX-License-Identifier: Apache-2.0
// Bytes as a tar archive: entries that lie inside it, in order and apart, or refused as data. Entries written
// by our own writer read back as they were.
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "data/container/tar_reader.h"
#include "data/storage/byte_reader.h"
#include "fuzz_target.h"

namespace {

using namespace stoker::data;

constexpr uint64_t kMaxContent = 1 << 16;

struct Member {
  TarEntry entry;
  std::string content;
};

/// All entries up to the end or to what is damaged; `whole`: nothing is damaged.
std::vector<Member> read_members(const uint8_t* bytes, size_t size, bool& whole) {
  const MemoryBytes archive("fuzz.tar", bytes, size);
  TarReader reader(archive);
  std::vector<Member> members;
  uint64_t free_from = 0;
  whole = false;
  try {
    for (TarEntry entry; reader.next(entry);) {
      FUZZ_CHECK(!entry.name.empty() && entry.name.size() <= kMaxTarName);
      FUZZ_CHECK(entry.name.find('\0') == std::string::npos);
      FUZZ_CHECK(entry.offset % kTarBlock == 0 && entry.header_at + kTarBlock == entry.offset);
      FUZZ_CHECK(entry.header_at >= free_from);
      FUZZ_CHECK(entry.offset <= size && entry.size <= size - entry.offset);
      free_from = entry.offset + entry.size;
      if (entry.size > kMaxContent) continue;
      members.push_back({entry, reader.content_of(entry, kMaxContent)});
      FUZZ_CHECK(members.back().content ==
                 std::string(reinterpret_cast<const char*>(bytes) + entry.offset, entry.size));
    }
    whole = true;
  } catch (const stoker::core::Error& error) {
    FUZZ_CHECK(error.kind() == stoker::core::ErrorKind::data);
  }
  return members;
}

/// Makes the checksums of all blocks that look like headers right again, so that changes get past them.
void repair_checksums(uint8_t* bytes, size_t size) {
  for (size_t block = 0; block + kTarBlock <= size; block += kTarBlock) {
    uint8_t* const header = bytes + block;
    if (std::string_view(reinterpret_cast<const char*>(header) + 257, 5) != "ustar") continue;
    unsigned sum = 8 * ' ';
    for (size_t i = 0; i < kTarBlock; ++i) sum += i >= 148 && i < 156 ? 0 : header[i];
    std::snprintf(reinterpret_cast<char*>(header) + 148, 8, "%06o", sum);
    header[155] = ' ';
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  bool whole = false;
  const std::vector<Member> members = read_members(bytes, size, whole);
  std::string text;
  for (const Member& member : members) {
    text += tar_header_text(member.entry.name, member.content.size()) + member.content;
    text.append(tar_padding(member.content.size()), '\0');
  }
  text.append(2 * kTarBlock, '\0');
  const std::vector<Member> again = read_members(reinterpret_cast<const uint8_t*>(text.data()), text.size(), whole);
  FUZZ_CHECK(again.size() == members.size());
  for (size_t i = 0; i < members.size(); ++i) {
    // A trailing slash means a folder to readers.
    FUZZ_CHECK(again[i].entry.name == members[i].entry.name && again[i].content == members[i].content);
  }
  return 0;
}

/// Half of the changes go to one header block, whose 512 bytes stay 512.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* bytes, size_t size, size_t max_size, unsigned int seed) {
  stoker::fuzz::Choices choices(seed);
  const size_t blocks = size / kTarBlock;
  if (blocks == 0 || choices.one_in(2)) {
    size = LLVMFuzzerMutate(bytes, size, max_size);
  } else {
    uint8_t* const header = bytes + choices.below(blocks) * kTarBlock;
    // The fields that mean something: name, size, type and magic, prefix.
    static constexpr size_t kFields[][2] = {{0, 100}, {124, 12}, {156, 1}, {257, 8}, {345, 155}, {0, 512}};
    const auto& [at, length] = kFields[choices.below(std::size(kFields))];
    LLVMFuzzerMutate(header + at, length, length);
  }
  if (!choices.one_in(8)) repair_checksums(bytes, size);
  return size;
}
