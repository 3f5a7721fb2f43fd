// SPDX-License-Identifier: Apache-2.0
#include "data/pack/shard_writer.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "core/error.h"
#include "core/format.h"
#include "core/system/file_system.h"
#include "data/container/tar_header.h"

namespace stoker::data {
namespace {

constexpr uint64_t kEndBytes = 2 * kTarBlock;
constexpr char kUnfinishedMark[] = ".unfinished-";

std::string temporary_name(const std::string& path) {
  const size_t base = path.rfind('/') + 1;
  return path.substr(0, base) + kUnfinishedMark + path.substr(base);
}

void append_member(const std::string& name, const void* content, uint64_t size, std::string& bytes) {
  bytes += tar_header_text(name, size);
  bytes.append(static_cast<const char*>(content), size);
  bytes.append(tar_padding(size), '\0');
}

}  // namespace

void make_members(const std::string& key, const std::string& extension, const std::vector<uint8_t>& image,
                  ShardMembers& members) {
  members.bytes.clear();
  const std::string header = tar_header_text(key + "." + extension, image.size());
  members.image_at = header.size();
  members.image_size = static_cast<uint32_t>(image.size());
  append_member(key + "." + extension, image.data(), image.size(), members.bytes);
  const std::string label = std::to_string(members.label);
  append_member(key + ".cls", label.data(), label.size(), members.bytes);
}

uint64_t closed_shard_bytes(uint64_t bytes) { return bytes + kEndBytes; }

ShardWriter::ShardWriter(std::string path)
    : path_(std::move(path)), temporary_path_(temporary_name(path_)), file_(temporary_path_) {}

void ShardWriter::add(const ShardMembers& members) {
  index_.add(at_ + members.image_at, members.image_size, members.label, members.name);
  file_.write(members.bytes.data(), members.bytes.size());
  hasher_.add(members.bytes);
  at_ += members.bytes.size();
}

uint64_t ShardWriter::finish(uint64_t first_source, uint64_t source_count, const std::string& pack_identity) {
  const std::string end(kEndBytes, '\0');
  file_.write(end.data(), end.size());
  hasher_.add(end);
  file_.finish();
  index_.shard_bytes = closed_shard_bytes(at_);
  index_.first_source = first_source;
  index_.source_count = source_count;
  index_.shard_digest = hasher_.hex();
  index_.pack_identity = pack_identity;
  std::remove(index_path_of(path_).c_str());  // of a shard that is replaced: it must not meet the new archive
  if (std::rename(temporary_path_.c_str(), path_.c_str()) != 0) {
    throw core::errno_error(errno, "replace", core::printable(path_), core::ErrorKind::io);
  }
  core::write_file_atomically(index_path_of(path_), shard_index_text(index_), /*durable=*/true);
  return index_.shard_bytes;
}

void remove_unfinished_shards(const std::string& directory) {
  namespace fs = std::filesystem;
  std::vector<core::DirectoryEntry> entries;
  core::posix_file_system().list(directory, entries);  // a folder that cannot be listed fails where it is written
  for (const core::DirectoryEntry& entry : entries) {
    const std::string& name = entry.name;
    const bool unfinished = name.rfind(kUnfinishedMark, 0) == 0 || name.find(".index.tmp-") != std::string::npos ||
                            name.rfind("pack.json.tmp-", 0) == 0 || name.rfind("classes.txt.tmp-", 0) == 0;
    std::error_code ignored;
    if (unfinished) fs::remove(fs::path(directory) / name, ignored);
  }
}

}  // namespace stoker::data
