// SPDX-License-Identifier: Apache-2.0
// A source over a list of image files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
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

/// One spelling of each path, and the part of it.
std::string key_of(const FileList& files, int64_t index);

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

// A part of another source, and the split of a source in two by a hash of the names.

struct Fold {
  int64_t number = 1, of = 2;  ///< number from 1
};
/// fold:2/5 of --val-split. Throws Error{config} for what only begins so.
std::optional<Fold> fold_of(const config::DataOptions& options);
/// Whether a part of the training split validates: a fraction, or one of several folds.
bool holds_out(const config::DataOptions& options);
/// Whether all samples may be those of training, without a folder of that name: validation takes a part of them, or
/// there is none.
bool has_no_val_split(const config::DataOptions& options);

/// (kept, held out): a sample is held out when the hash of its relative name falls below `fraction`, so that
/// it stays on its side when other samples come or go. Either part may be empty.
std::pair<std::shared_ptr<const Source>, std::shared_ptr<const Source>> hold_out(
    const std::shared_ptr<const Source>& whole, double fraction);

/// hold_out() of each class by itself: of its samples those with the lowest hashes are held out, `fraction`
/// of them, rounded, and at least one of two or more. As hold_out() where there are no classes.
std::pair<std::shared_ptr<const Source>, std::shared_ptr<const Source>> hold_out_stratified(
    const std::shared_ptr<const Source>& whole, double fraction);

/// The part `fold` (from 0) of `count`: each sample is in one, by the hash of its name, and of each class as many in
/// one as in another, but for one.
std::pair<std::shared_ptr<const Source>, std::shared_ptr<const Source>> hold_out_fold(
    const std::shared_ptr<const Source>& whole, int64_t fold, int64_t count);

/// hold_out_fold() of whole groups, named as hold_out_groups() has them: the largest first, each to the fold that has
/// the smallest share of its classes.
std::pair<std::shared_ptr<const Source>, std::shared_ptr<const Source>> hold_out_fold_of_groups(
    const std::shared_ptr<const Source>& whole, const std::vector<std::string>& groups, int64_t fold, int64_t count);

/// hold_out() of whole groups: samples with one name in `groups` [samples] stay together, those without a name are
/// alone. Groups are taken in the order of hashes of their names, each that brings the held-out shares of its classes
/// nearer to `fraction`. A class in several groups has samples on both sides where that can be.
std::pair<std::shared_ptr<const Source>, std::shared_ptr<const Source>> hold_out_groups(
    const std::shared_ptr<const Source>& whole, const std::vector<std::string>& groups, double fraction);

/// The samples of each class with the lowest hashes: `fraction` of them up to 1, else that number; at least one. A
/// smaller part lies within a larger one. The source itself where that is all.
std::shared_ptr<const Source> part_of_each_class(const std::shared_ptr<const Source>& whole, double fraction);

/// At most `most` samples, evenly spaced; the source itself when it has no more.
std::shared_ptr<const Source> evenly_spaced(const std::shared_ptr<const Source>& whole, int64_t most);

}  // namespace stoker::data
