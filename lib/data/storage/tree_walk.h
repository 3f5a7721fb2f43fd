// SPDX-License-Identifier: Apache-2.0
// Walking folders of images in a fixed order, without ever hanging or going in circles.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/storage/byte_reader.h"

namespace stoker::data {

/// Files that were left out of a scan and why, with the first example of each kind.
class ScanNotes {
 public:
  void count(const std::string& what, const std::string& path);
  bool has_counted(const std::string& what) const { return tallies_.count(what) > 0; }
  /// A line of its own.
  void add_line(const std::string& line) { lines_.push_back(line); }
  /// "skipped 3 files that are not images (the first: train/a/readme.txt)" and so on, then the lines of their own.
  std::vector<std::string> lines() const;

 private:
  struct Tally {
    int64_t count = 0;
    std::string first;
  };
  std::map<std::string, Tally> tallies_;
  std::vector<std::string> lines_;
};

/// One walker per split: a folder reached twice, by whatever links, is entered once. Folders are
/// distinguished by device and inode.
class TreeWalker {
 public:
  using FileVisitor = std::function<void(const std::string& relative_path, const FileStamp& stamp)>;

  TreeWalker(bool follow_symlinks, ScanNotes& notes) : follow_symlinks_(follow_symlinks), notes_(notes) {}

  /// Names of the folders in `directory`, sorted bytewise; hidden ones are left out. Throws core::Error.
  std::vector<std::string> folders_in(const std::string& directory);
  /// Takes a folder for itself, so that links found later do not lead into it. False when it was taken
  /// before.
  bool claim(const std::string& directory);
  /// Claims `directory` and all folders above it: a link to one of them is a circle.
  void claim_with_ancestors(const std::string& directory);
  /// Visits the image files at or below `directory`/`relative`, folder by folder, sorted bytewise. A dangling
  /// link with an image's name is visited with an empty stamp: its read fails, and so it is counted as a bad
  /// image. The folder itself has been claimed. Throws core::Error{permission, io} for folders that cannot be
  /// listed, core::StopRequested.
  void visit_images(const std::string& directory, const std::string& relative, const FileVisitor& visitor) {
    visit_files(directory, relative, visitor, nullptr, nullptr);
  }
  /// The same, with sounds and videos, which visit_images() leaves out; an empty visitor leaves out as well.
  void visit_files(const std::string& directory, const std::string& relative, const FileVisitor& images,
                   const FileVisitor& sounds, const FileVisitor& videos) {
    visit_folder(directory, relative, {images, sounds, videos});
  }

 private:
  struct Visitors {
    const FileVisitor &images, &sounds, &videos;
    /// The visitor for a file that is called so and is no image by its name; null: none.
    const FileVisitor* of_name(const std::string& name) const;
  };
  void visit_folder(const std::string& directory, const std::string& relative, const Visitors& visitors);
  void visit_entry(const std::string& directory, const std::string& relative, const Visitors& visitors);

  const bool follow_symlinks_;
  ScanNotes& notes_;
  std::set<std::pair<uint64_t, uint64_t>> visited_;  ///< device and inode of folders
};

/// All names in `directory`, sorted bytewise; none where it cannot be listed.
std::vector<std::string> names_in(const std::string& directory);
/// Names in `directory`, sorted bytewise, that are those of images; what they are is not looked at. Throws core::Error.
std::vector<std::string> image_names_in(const std::string& directory);
/// By extension, in any case of letters.
bool has_image_name(const std::string& name);
bool has_sound_name(const std::string& name);
bool has_video_name(const std::string& name);
/// Any of these.
bool has_sample_name(const std::string& name);
/// Whether most of `count` files are called as `has_name` demands.
bool most_are_called(bool (*has_name)(const std::string& name), int64_t count,
                     const std::function<std::string_view(int64_t index)>& name);
/// The stamp of a regular file, links followed; an empty one when there is none.
FileStamp stamp_of(const std::string& path);
bool is_directory(const std::string& path);
/// Another file beside a missing one, whose name differs in upper and lower case or in a few letters; else one there or
/// a folder deeper whose name continues behind the missing one, as ID_green.png; empty: there is none.
std::string nearest_file(const std::string& path);
/// Files that systems, NAS boxes and Python leave beside folders of images.
bool is_system_folder(const std::string& name);

// The order in which people number files: frame_9 before frame_10.

/// Whether `a` comes before `b`: runs of digits by their number, other bytes as they are. Names that differ
/// only in leading zeros go bytewise, so that it is a strict order of all names.
bool comes_before(std::string_view a, std::string_view b);

/// One spelling of each path: without ".", "..", and doubled slashes.
std::string normalized_path(const std::string& path);

}  // namespace stoker::data
