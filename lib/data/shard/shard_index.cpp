// SPDX-License-Identifier: Apache-2.0
#include "data/shard/shard_index.h"

#include <algorithm>

#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"
#include "core/system/file.h"
#include "data/container/tar_reader.h"

namespace stoker::data {
namespace {

constexpr std::string_view kIndexMagic("STOKERIX", 8);
constexpr uint64_t kIndexVersion = 1;
constexpr uint64_t kHeaderBytes = 128, kEntryBytes = 24, kDigestBytes = 32;
constexpr std::string_view kNoDigest = "00000000000000000000000000000000";

void put(std::string& text, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xFF);
}

uint64_t little(const uint8_t* bytes, int count) {
  uint64_t value = 0;
  for (int i = count; i-- > 0;) value = value << 8 | bytes[i];
  return value;
}

/// Reads one index front to back.
class IndexParser {
 public:
  IndexParser(const uint8_t* bytes, uint64_t size, const std::string& path) : bytes_(bytes), size_(size), path_(path) {}

  ShardIndex parse() {
    read_header();
    check_digest();
    for (uint64_t i = 0; i < entries_; ++i) read_entry(bytes_ + kHeaderBytes + i * kEntryBytes, i);
    const uint64_t names_end = index_.entries.empty() ? 0 : index_.entries.back().name_end;
    if (names_end != name_bytes_) fail("names that belong to no entry");
    const auto* const names = reinterpret_cast<const char*>(bytes_) + kHeaderBytes + entries_ * kEntryBytes;
    index_.names.assign(names, name_bytes_);
    return std::move(index_);
  }

 private:
  [[noreturn]] void fail(const std::string& cause) const {
    throw core::Error(core::ErrorKind::data, core::printable(path_) + ": " + cause,
                      "train pack --index FOLDER writes indexes again from the archives");
  }

  std::string digest_at(uint64_t at) const {
    const std::string digest(reinterpret_cast<const char*>(bytes_) + at, kDigestBytes);
    if (digest.find_first_not_of("0123456789abcdef") != std::string::npos) fail("a digest that is none");
    return digest == kNoDigest ? "" : digest;
  }

  void read_header() {
    if (size_ < kHeaderBytes + kDigestBytes) fail("cut short inside the header");
    if (std::string_view(reinterpret_cast<const char*>(bytes_), kIndexMagic.size()) != kIndexMagic) {
      fail("not the index of a shard");
    }
    if (const uint64_t version = little(bytes_ + 8, 8); version != kIndexVersion) {
      fail(core::format("version {} of the index; version {} is read", version, kIndexVersion));
    }
    entries_ = little(bytes_ + 16, 8);
    name_bytes_ = little(bytes_ + 24, 8);
    index_.shard_bytes = little(bytes_ + 32, 8);
    index_.first_source = little(bytes_ + 40, 8);
    index_.source_count = little(bytes_ + 48, 8);
    index_.shard_digest = digest_at(64);
    index_.pack_identity = digest_at(96);
    const uint64_t body = size_ - kHeaderBytes - kDigestBytes;
    if (little(bytes_ + 56, 8) != 0 || entries_ > body / kEntryBytes || name_bytes_ != body - entries_ * kEntryBytes) {
      fail("damaged: its size differs from that in the header");
    }
  }

  void check_digest() const {
    const std::string_view all(reinterpret_cast<const char*>(bytes_), size_);
    if (core::hash_hex(all.substr(0, size_ - kDigestBytes)) != all.substr(size_ - kDigestBytes)) {
      fail("damaged: its digest does not fit");
    }
  }

  void read_entry(const uint8_t* at, uint64_t number) {
    if (number == 0) index_.entries.reserve(entries_);
    const uint64_t offset = little(at, 8), size = little(at + 8, 4), label = little(at + 12, 4),
                   name_end = little(at + 16, 8);
    const uint64_t name_begin = number == 0 ? 0 : index_.entries.back().name_end;
    const bool inside = offset <= index_.shard_bytes && size <= index_.shard_bytes - offset;
    const bool named = name_end > name_begin && name_end <= name_bytes_ && name_end - name_begin <= kMaxTarName;
    const bool labelled = label <= static_cast<uint64_t>(kMaxShardLabel) || label == 0xFFFFFFFF;
    if (offset < kTarBlock || offset % kTarBlock != 0 || size > kMaxShardImageBytes || !inside || !named || !labelled) {
      fail(core::format("damaged: entry {} is out of range", number));
    }
    index_.entries.push_back(
        {offset, static_cast<uint32_t>(size), label == 0xFFFFFFFF ? -1 : static_cast<int32_t>(label), name_end});
  }

  const uint8_t* const bytes_;
  const uint64_t size_;
  const std::string& path_;
  ShardIndex index_;
  uint64_t entries_ = 0, name_bytes_ = 0;
};

}  // namespace

std::string shard_index_text(const ShardIndex& index) {
  std::string text(kIndexMagic);
  put(text, kIndexVersion, 8);
  put(text, index.entries.size(), 8);
  put(text, index.names.size(), 8);
  put(text, index.shard_bytes, 8);
  put(text, index.first_source, 8);
  put(text, index.source_count, 8);
  put(text, 0, 8);
  text += index.shard_digest.empty() ? kNoDigest : std::string_view(index.shard_digest);
  text += index.pack_identity.empty() ? kNoDigest : std::string_view(index.pack_identity);
  for (const ShardEntry& entry : index.entries) {
    put(text, entry.offset, 8);
    put(text, entry.size, 4);
    put(text, static_cast<uint32_t>(entry.label), 4);
    put(text, entry.name_end, 8);
  }
  text += index.names;
  return text + core::hash_hex(text);
}

ShardIndex parse_shard_index(const uint8_t* bytes, uint64_t size, const std::string& path) {
  return IndexParser(bytes, size, path).parse();
}

ShardIndex read_shard_index(const std::string& path) {
  constexpr uint64_t kMaxIndexBytes = uint64_t{16} << 30;
  const std::string text = core::read_file(path, kMaxIndexBytes);
  return parse_shard_index(reinterpret_cast<const uint8_t*>(text.data()), text.size(), path);
}

}  // namespace stoker::data
