// SPDX-License-Identifier: Apache-2.0
// A source over a list of image files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "config/options.h"
#include "data/sound/sound_source.h"
#include "data/source.h"
#include "data/storage/byte_reader.h"
#include "data/storage/staged_files.h"
#include "data/storage/tree_walk.h"

namespace stoker::data {

/// Labelled paths in order: 32 bytes each, all paths in one text, and their targets if any.
class FileList {
 public:
  /// Relative paths are below `directory`.
  explicit FileList(std::string directory, int64_t num_targets = 0)
      : directory_(std::move(directory)), num_targets_(num_targets) {}

  void add(std::string_view path, int64_t label, const FileStamp& stamp);
  /// `targets` [num_targets] finite; without a class.
  void add(std::string_view path, const std::vector<float>& targets, const FileStamp& stamp);
  /// An image with the part of it that crops are taken from. A list has a region for every image or for none.
  void add(std::string_view path, const std::vector<float>& targets, const FileStamp& stamp,
           const RegionOfInterest& region);
  /// The part of the file added last. A list has one for every file or for none.
  void set_part(const SoundPart& part) { parts_.push_back(part); }
  SoundPart part(int64_t index) const { return parts_.empty() ? SoundPart() : parts_[static_cast<size_t>(index)]; }
  bool has_parts() const { return !parts_.empty(); }
  int64_t size() const { return static_cast<int64_t>(entries_.size()); }
  int64_t label(int64_t index) const { return entries_[static_cast<size_t>(index)].label; }
  RegionOfInterest region(int64_t index) const {
    return regions_.empty() ? RegionOfInterest() : regions_[static_cast<size_t>(index)];
  }
  bool has_regions() const { return !regions_.empty(); }
  /// [num_targets]
  const float* targets(int64_t index) const { return targets_.data() + index * num_targets_; }
  int64_t num_targets() const { return num_targets_; }
  FileStamp stamp(int64_t index) const;
  std::string_view relative_path(int64_t index) const;
  std::string path(int64_t index) const { return absolute(relative_path(index)); }
  std::string absolute(std::string_view relative_path) const;
  void shrink_to_fit();
  /// From now on read() takes copies in `stage_dir`, which are made here; empty: none are. Adds to `notes`. Throws
  /// as StagedFiles::stage(). Nothing may be added afterwards.
  void stage(const std::string& stage_dir, ScanNotes& notes);
  /// As read_sample_file() of the file `index`, or of its copy.
  std::string read(int64_t index, int64_t max_bytes, std::vector<uint8_t>& buffer) const;
  /// Where it lies, and in which copy.
  SoundPlace place(int64_t index) const;
  int64_t memory_bytes() const {
    return static_cast<int64_t>(paths_.capacity() + entries_.capacity() * sizeof(Entry) +
                                targets_.capacity() * sizeof(float));
  }

 private:
  struct Entry {
    uint64_t path_at;
    int64_t size, modified_ns;
    uint32_t path_length;
    int32_t label;
  };
  static_assert(sizeof(Entry) <= 64, "an entry must stay small: there are millions");

  std::string directory_;
  int64_t num_targets_;
  std::string paths_;
  std::vector<Entry> entries_;
  std::vector<float> targets_;                 ///< [entries, num_targets]
  std::vector<RegionOfInterest> regions_;      ///< [entries] or none
  std::vector<SoundPart> parts_;               ///< [entries] or none
  std::shared_ptr<const StagedFiles> copies_;  ///< that are read; null: there are none
};

/// Finds the rows of a list that name a file once more, also in another spelling: "a.jpg", "./a.jpg", "/data/a.jpg".
class ListedFiles {
 public:
  /// `files` outlives it, and has no entries yet.
  explicit ListedFiles(const FileList& files);
  /// The entry of the list that is this part of this file; -1: none, and the entry that comes next is remembered as it.
  int64_t earlier(std::string_view path, const SoundPart& part);

 private:
  std::string key_of(std::string_view path, const SoundPart& part) const;

  const FileList& files_;
  const std::string folder_;                     ///< folder of the list, as absolute paths begin with it
  std::unordered_map<uint64_t, int64_t> first_;  ///< hash of a key -> its first entry
};

/// Images with a class each, samples of many bands (bands/band_source.h), or sounds or videos where most are called so.
std::shared_ptr<const Source> make_file_source(FileList files, std::vector<std::string> class_names,
                                               const config::DataOptions& options = {});
/// Videos with a class each; with two `views` pairs of neighbours (video/video_source.h).
std::shared_ptr<const Source> make_videos_of_files(FileList files, std::vector<std::string> class_names,
                                                   const config::DataOptions& options, int64_t views);
/// Frames of videos with the class of their video each.
std::shared_ptr<const Source> make_frame_source(FileList files, std::vector<std::string> class_names);
/// The same with numbers to learn: one name per target of the list.
std::shared_ptr<const Source> make_target_source(FileList files, std::vector<std::string> target_names,
                                                 const config::DataOptions& options = {});

}  // namespace stoker::data
