// SPDX-License-Identifier: Apache-2.0
// <data_dir>/<split>-000000.tar and so on: tar shards as `train pack` or WebDataset's tools write them, with
// an index beside each, or without.
#include <sys/resource.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/format.h"
#include "core/system/file.h"
#include "data/container/tar_reader.h"
#include "data/layout.h"
#include "data/shard/pack_manifest.h"
#include "data/shard/shard_index.h"
#include "data/shard/shard_scan.h"
#include "data/sound/sound_source.h"
#include "data/source.h"
#include "data/storage/byte_reader.h"
#include "data/storage/staged_files.h"
#include "data/storage/tree_walk.h"

namespace stoker::data {
namespace {

// A source over tar shards: every sample in one read, in any order; of a sound what its excerpt needs.

struct Shard {
  std::string path;
  ShardIndex index;
  std::shared_ptr<const StagedFiles> staged = nullptr;  ///< copies, if any: they go with the source
  std::string copy = "";                                ///< that is read; empty: there is none
  const std::string& read_path() const { return copy.empty() ? path : copy; }
};

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
  std::string relative_name(int64_t index) const override { return std::string(relative_text(index)); }
  std::string_view relative_text(int64_t index) const {
    const Place place = place_of(index);
    return shards_[place.shard].index.name(place.entry);
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

  SoundPlace sound_place(int64_t index) const {
    const Place place = place_of(index);
    SoundPlace sound{shards_[place.shard].read_path(), "", stamps_[place.shard]};
    sound.first_byte = entry_of(place).offset;
    sound.bytes = entry_of(place).size;
    std::vector<uint8_t> header;
    SampleContent nothing;
    sound.problem = read_head(index, 0, header, nothing);
    return sound;
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

/// Samples in the order of the shards and of their entries, sounds where most are called so. Archives stay open as far
/// as the limit of open files allows. Throws core::Error when an archive is missing or has another size than in its
/// index.
std::shared_ptr<const Source> make_shard_source(std::vector<Shard> shards, std::vector<std::string> class_names,
                                                const config::SoundOptions& sound) {
  auto files = std::make_shared<const ShardSource>(std::move(shards), std::move(class_names));
  const auto name = [&](int64_t index) { return files->relative_text(index); };
  if (!most_are_called(has_sound_name, files->size(), name)) return files;
  return make_sound_source(
      files, [files](int64_t index) { return files->sound_place(index); }, sound);
}

class ShardLayout : public Layout {
 public:
  explicit ShardLayout(const config::DataOptions& options) : options_(options) {}

  bool has_split(const std::string& split) const override { return !shards_of(split).empty(); }

  std::vector<std::string> class_names(const std::string& train_split) const override {
    if (auto names = read_classes_file(options_.data_dir)) return std::move(*names);
    int32_t largest = -1;
    for (const Shard& shard : loaded(train_split).shards) {
      for (const ShardEntry& entry : shard.index.entries) largest = std::max(largest, entry.label);
    }
    const int64_t classes = options_.num_classes.is_auto() ? largest + 1 : options_.num_classes.value();
    std::vector<std::string> numbered;
    for (int64_t i = 0; i < classes; ++i) numbered.push_back(std::to_string(i));
    return numbered;
  }

  std::shared_ptr<const Source> open(const std::string& split, const std::vector<std::string>& class_names, bool,
                                     std::vector<std::string>& notes) const override {
    loaded(split);
    Loaded split_content = std::move(loaded_.extract(split).mapped());
    for (const std::string& line : split_content.notes.lines()) notes.push_back(split + ": " + line);
    if (split_content.without_index > 0) {
      notes.push_back(core::format(
          "{}: {} of {} shards have no index and were read through; train pack --index {} "
          "writes it once for all",
          split, split_content.without_index, split_content.shards.size(), core::printable(options_.data_dir)));
    }
    for (const Shard& shard : split_content.shards) check_labels(shard, static_cast<int64_t>(class_names.size()));
    stage(split, split_content.shards, notes);
    return make_shard_source(std::move(split_content.shards), class_names, options_.sound);
  }

 private:
  struct Loaded {
    std::vector<Shard> shards;
    ScanNotes notes;
    int64_t without_index = 0;
  };

  /// Archives called like the split, or all archives in its folder, which then holds no folders of images.
  std::vector<std::string> shards_of(const std::string& split) const {
    const std::string folder = options_.data_dir + "/" + split;
    std::vector<std::string> shards = shards_in(options_.data_dir, split);
    if (!shards.empty() || !is_directory(folder)) return shards;
    shards = archives_in(folder);
    const std::vector<std::string> names = shards.empty() ? std::vector<std::string>() : names_in(folder);
    const auto is_folder = [&](const std::string& name) { return is_directory(folder + "/" + name); };
    return std::any_of(names.begin(), names.end(), is_folder) ? std::vector<std::string>() : shards;
  }

  /// Copies the archives to where they are read faster, if that is requested.
  void stage(const std::string& split, std::vector<Shard>& shards, std::vector<std::string>& notes) const {
    if (options_.stage_dir.empty() || shards.empty()) return;
    std::vector<std::string> paths;
    for (const Shard& shard : shards) paths.push_back(shard.path);
    std::string note;
    const auto copies = StagedFiles::stage(paths, options_.stage_dir, note);
    for (Shard& shard : shards) {
      shard.staged = copies;
      shard.copy = copies->copy_or_original(shard.path);
    }
    notes.push_back(split + ": " + note);
  }

  /// Reads the indexes of a split, once.
  const Loaded& loaded(const std::string& split) const {
    const auto found = loaded_.find(split);
    if (found != loaded_.end()) return found->second;
    Loaded content;
    const ShardLabels labels(read_classes_file(options_.data_dir).value_or(std::vector<std::string>()));
    for (const std::string& path : shards_of(split)) {
      const std::string index_path = index_path_of(path);
      if (core::file_exists(index_path)) {
        content.shards.push_back({path, read_shard_index(index_path)});
      } else {
        content.shards.push_back({path, scan_shard(FileBytes(path), labels, content.notes)});
        ++content.without_index;
      }
    }
    check_whole(split, content.shards);
    return loaded_.emplace(split, std::move(content)).first->second;
  }

  /// A pack must be finished, and all of it there.
  void check_whole(const std::string& split, const std::vector<Shard>& shards) const {
    const std::optional<PackManifest> manifest = read_pack_manifest(options_.data_dir);
    if (!manifest || manifest->count(split) == 0) return;
    const PackedSplit& packed = manifest->at(split);
    const std::string directory = core::printable(options_.data_dir);
    if (!packed.complete) {
      throw core::Error(core::ErrorKind::data,
                        core::format("{}: split '{}' is not packed to its end", directory, core::printable(split)),
                        "run the same train pack command again: it continues where it stopped");
    }
    int64_t images = 0;
    for (const Shard& shard : shards) images += static_cast<int64_t>(shard.index.entries.size());
    const auto count = static_cast<int64_t>(shards.size());
    if (count == packed.shards && images == packed.images) return;
    throw core::Error(core::ErrorKind::data,
                      core::format("{}: split '{}' has {} images in {} shards; pack.json gives {} in {}", directory,
                                   core::printable(split), images, count, packed.images, packed.shards),
                      "get the missing files, or pack the data set again");
  }

  static void check_labels(const Shard& shard, int64_t classes) {
    for (size_t i = 0; i < shard.index.entries.size(); ++i) {
      const int32_t label = shard.index.entries[i].label;
      if (label >= 0 && label < classes) continue;
      const std::string place = core::printable(shard.path + "/" + std::string(shard.index.name(i)));
      if (label < 0) {
        throw core::Error(core::ErrorKind::data, place + " has no label",
                          "a sample has a .cls member with its label, or a .json member with \"label\"; an archive of "
                          "class folders is unpacked: tar xf");
      }
      throw core::Error(core::ErrorKind::data,
                        core::format("{}: label {} is out of range: there are {} classes, 0 to {}", place, label,
                                     classes, classes - 1),
                        "the number of classes follows from classes.txt, --num-classes or the training split");
    }
  }

  const config::DataOptions options_;
  mutable std::map<std::string, Loaded> loaded_;  ///< what has been read: class names and images need the same
};

}  // namespace

std::unique_ptr<Layout> make_shard_layout(const config::DataOptions& options) {
  return std::make_unique<ShardLayout>(options);
}

}  // namespace stoker::data
