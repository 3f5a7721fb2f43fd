// SPDX-License-Identifier: Apache-2.0
#include "data/shard/shard_source.h"

#include <sys/resource.h>

#include <algorithm>
#include <limits>

#include "data/container/tar_header.h"
#include "data/fingerprint.h"
#include "data/leaf_source.h"
#include "data/storage/byte_reader.h"

namespace stoker::data {
namespace {

/// How many archives may stay open: half of what the process is allowed.
size_t open_limit() {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return static_cast<size_t>(std::min<rlim_t>(limit.rlim_cur, 1 << 20) / 2);
}

class ShardSource : public LeafSource, private StoredSamples {
 public:
  ShardSource(std::vector<Shard> shards, std::vector<std::string> class_names) : shards_(std::move(shards)) {
    class_names_ = std::move(class_names);
    ListFingerprint fingerprint(class_names_);
    const bool keep_open = shards_.size() <= open_limit();
    for (const Shard& shard : shards_) {
      auto file = std::make_unique<FileBytes>(shard.read_path());
      if (file->size() != shard.index.shard_bytes) refuse_other_size(shard, file->size());
      stamps_.push_back(file->stamp());
      if (keep_open) open_.push_back(std::move(file));
      ends_.push_back((ends_.empty() ? 0 : ends_.back()) + static_cast<int64_t>(shard.index.entries.size()));
      for (size_t i = 0; i < shard.index.entries.size(); ++i) {
        const ShardEntry& entry = shard.index.entries[i];
        fingerprint.add_sample(shard.index.name(i), entry.size, entry.label);
      }
    }
    fingerprint_ = fingerprint.hex();
  }

  int64_t size() const override { return ends_.empty() ? 0 : ends_.back(); }
  int64_t label(int64_t index) const override { return entry_of(place_of(index)).label; }
  std::string name(int64_t index) const override {
    const Place place = place_of(index);
    return shards_[place.shard].path + "/" + std::string(shards_[place.shard].index.name(place.entry));
  }
  std::string relative_name(int64_t index) const override {
    const Place place = place_of(index);
    return std::string(shards_[place.shard].index.name(place.entry));
  }
  SourceMemory memory() const override {
    size_t bytes = 0;
    for (const Shard& shard : shards_) {
      bytes += shard.index.names.capacity() + shard.index.entries.capacity() * sizeof(ShardEntry);
    }
    return {static_cast<int64_t>(bytes), 0};
  }
  const StoredSamples* stored() const override { return this; }

  std::vector<int64_t> run_ends() const override { return ends_; }
  int64_t stored_bytes(int64_t index) const override { return static_cast<int64_t>(entry_of(place_of(index)).size); }

  std::string read(int64_t index, std::vector<uint8_t>& buffer, SampleContent& content) const override {
    return read_head(index, std::numeric_limits<int64_t>::max(), buffer, content);
  }

  std::string read_head(int64_t index, int64_t head_bytes, std::vector<uint8_t>& buffer,
                        SampleContent& content) const override {
    const Place place = place_of(index);
    const ShardEntry& entry = entry_of(place);
    const uint64_t wanted = std::min<uint64_t>(entry.size, static_cast<uint64_t>(head_bytes));
    const uint64_t bytes = kTarBlock + wanted;
    if (buffer.size() < bytes) buffer.resize(bytes);
    if (std::string cause = read_member(place.shard, entry.offset - kTarBlock, buffer.data(), bytes); !cause.empty()) {
      return cause;
    }
    // The header stands right before the content: one read more than pays for it, and it shows when index and
    // archive no longer belong together.
    TarHeader header;
    if (!read_tar_header(buffer.data(), header).empty() || header.type != TarType::regular ||
        header.size != entry.size) {
      return "the shard has changed since its index was made";
    }
    content.bytes = buffer.data() + kTarBlock;
    content.size = wanted;
    return "";
  }

 private:
  struct Place {
    size_t shard, entry;
  };

  Place place_of(int64_t index) const {
    const auto shard = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin());
    return {shard, static_cast<size_t>(index - (shard == 0 ? 0 : ends_[shard - 1]))};
  }
  const ShardEntry& entry_of(const Place& place) const { return shards_[place.shard].index.entries[place.entry]; }

  /// "" or what makes a bad image.
  std::string read_member(size_t shard, uint64_t at, uint8_t* bytes, uint64_t count) const {
    if (!open_.empty()) return open_[shard]->try_read(at, bytes, count);
    const FileBytes file(shards_[shard].read_path());
    if (file.stamp().size != stamps_[shard].size || file.stamp().modified_ns != stamps_[shard].modified_ns) {
      return "the shard has changed since the scan";
    }
    return file.try_read(at, bytes, count);
  }

  [[noreturn]] static void refuse_other_size(const Shard& shard, uint64_t bytes) {
    throw core::Error(core::ErrorKind::data,
                      core::format("{} has {} bytes, its index was made for {}", core::printable(shard.path), bytes,
                                   shard.index.shard_bytes),
                      "get the archive again; if the archive is right, train pack --index FOLDER writes its index");
  }

  const std::vector<Shard> shards_;
  std::vector<std::unique_ptr<const FileBytes>> open_;  ///< empty when there are too many
  std::vector<FileStamp> stamps_;
  std::vector<int64_t> ends_;  ///< number of samples in a shard and all before it
};

}  // namespace

std::shared_ptr<const Source> make_shard_source(std::vector<Shard> shards, std::vector<std::string> class_names) {
  return std::make_shared<ShardSource>(std::move(shards), std::move(class_names));
}

}  // namespace stoker::data
