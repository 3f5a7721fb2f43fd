// SPDX-License-Identifier: Apache-2.0
// Checkpoints as directories on disk: how they are committed, found, verified and pruned. What the files mean:
// engine/checkpoint. A checkpoint is complete exactly when its manifest.json verifies; see
// docs/reference/run-directory.md.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/system/file_system.h"
#include "core/text/json.h"

namespace stoker::engine {

struct FileRecord {
  int64_t bytes = 0;
  std::string digest;  ///< XXH3-128, hexadecimal
};

struct Manifest {
  int64_t updates = 0;
  std::map<std::string, FileRecord> files;
  core::Json extra;  ///< what the owner wants compared without reading the files
};

struct Committed {
  int64_t bytes = 0;   ///< total size of its files
  std::string digest;  ///< as checkpoint_digest()
};

/// The folder beside the checkpoints of a run with the average of the last ones.
inline constexpr const char* kAverageFolder = "average";

/// The folder `checkpoints` of one run. The run directory's lock must be held by whoever writes.
class CheckpointFiles {
 public:
  explicit CheckpointFiles(std::string directory, core::FileSystem& files = core::posix_file_system());

  const std::string& directory() const { return directory_; }
  core::FileSystem& file_system() const { return files_; }
  std::string path_of(int64_t updates) const;  ///< .../step-00001234

  /// Creates the folder, proves that it can be written to, and removes what an interrupted save left behind.
  void prepare();

  /// Writes one checkpoint: `fill(folder)` writes files through file_system() and returns their records; then the
  /// manifest, fsync, a verification from disk, rename, and fsync of the parent. A checkpoint of the same update is
  /// replaced in one step. On any error nothing of the old state is lost.
  /// `name`: that of a folder which is no checkpoint of a run; empty: path_of(updates).
  Committed commit(int64_t updates, const std::function<std::map<std::string, FileRecord>(const std::string&)>& fill,
                   const core::Json& extra, const std::string& name = "");

  /// Points the link `name` (last, best) at the checkpoint of `updates`.
  void point(const std::string& name, int64_t updates);
  /// Updates that the link names; -1 when there is none.
  int64_t pointed(const std::string& name) const;
  /// Deletes all but the newest `keep_last` (at least 2) and those in `keep`. What cannot be deleted stays, with a
  /// warning in the log.
  void prune(int64_t keep_last, const std::vector<int64_t>& keep);

  /// Whether there is a checkpoint of `updates` updates, verified or not.
  bool has(int64_t updates) const;
  /// Whether each of its files is what was saved; reads them.
  bool is_whole(int64_t updates) const;
  void remove_link(const std::string& name);
  /// Updates of all checkpoints, newest first, verified or not; none when the folder is missing. Throws permission, os
  /// or io when the folder cannot be read.
  std::vector<int64_t> list() const;
  /// Renames the checkpoint of `updates` to superseded-step-..., where list() does not see it, in place of an older
  /// one of that name. Returns the new path. Throws permission or io.
  std::string set_aside(int64_t updates);
  /// Path of the newest checkpoint whose content verifies, or ""; warns about every newer one that does not. Throws
  /// when one cannot be read for another reason than its content: it may be whole.
  std::string newest_verified() const;

 private:
  std::string directory_;
  core::FileSystem& files_;
};

/// Reads the manifest alone: cheap, and enough to compare a run with a checkpoint. Throws Error{data} or no_input.
Manifest read_manifest(const std::string& path, core::FileSystem& files = core::posix_file_system());
/// Reads the manifest of a checkpoint folder and checks every file's size and digest. Throws Error{data} (or no_input)
/// that names the file and what is wrong with it; permission, os or io when the file cannot be read.
Manifest verify_checkpoint(const std::string& path, core::FileSystem& files = core::posix_file_system());
/// XXH3-128, hexadecimal, of a checkpoint's manifest as it was saved, which has the digests of all its files. Throws as
/// read_manifest().
std::string checkpoint_digest(const std::string& path, core::FileSystem& files = core::posix_file_system());
/// Replaces a file of the checkpoint folder `path` and its manifest in one step. The manifest keeps the record of the
/// file that was saved: checkpoint_digest() stays. The lock of its run is held. Throws as verify_checkpoint() and
/// commit().
void replace_in_checkpoint(const std::string& path, const std::string& name, std::string_view content,
                           core::FileSystem& files = core::posix_file_system());
/// Whether a file of the checkpoint was replaced since it was saved, as replace_in_checkpoint() does it.
bool was_replaced(const Manifest& manifest, const std::string& name);
/// Writes a file durably and returns its record.
FileRecord write_checkpoint_file(const std::string& path, std::string_view content,
                                 core::FileSystem& files = core::posix_file_system());

}  // namespace stoker::engine
