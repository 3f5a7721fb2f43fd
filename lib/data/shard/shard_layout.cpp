// SPDX-License-Identifier: Apache-2.0
// <data_dir>/<split>-000000.tar and so on: tar shards as `train pack` or WebDataset's tools write them, with
// an index beside each, or without.
#include <algorithm>
#include <map>
#include <optional>

#include "core/error.h"
#include "core/format.h"
#include "core/system/file.h"
#include "data/layout.h"
#include "data/shard/pack_manifest.h"
#include "data/shard/shard_scan.h"
#include "data/shard/shard_source.h"

namespace stoker::data {
namespace {

class ShardLayout : public Layout {
 public:
  explicit ShardLayout(const config::DataOptions& options) : options_(options) {}

  bool has_split(const std::string& split) const override { return !shards_in(options_.data_dir, split).empty(); }

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
    return make_shard_source(std::move(split_content.shards), class_names);
  }

 private:
  struct Loaded {
    std::vector<Shard> shards;
    ScanNotes notes;
    int64_t without_index = 0;
  };

  /// Copies the archives to where they are read faster, if that is asked for.
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
    for (const std::string& path : shards_in(options_.data_dir, split)) {
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
                        "run the same train pack command again: it goes on where it stopped");
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
                          "a sample has a .cls member with its label, or a .json member with \"label\"");
      }
      throw core::Error(core::ErrorKind::data,
                        core::format("{}: label {} is out of range: there are {} classes, 0 to {}", place, label,
                                     classes, classes - 1),
                        "classes.txt, --num-classes or the training split say how many classes there are");
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
