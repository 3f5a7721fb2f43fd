// SPDX-License-Identifier: Apache-2.0
// Files that are whole or absent: every write, fsync and close is checked; reads accept regular files only.
// All functions throw core::Error with the path and the cause.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/system/file_system.h"

namespace stoker::core {

/// Opens a regular file without blocking, so a FIFO is an error and never a hang. Throws no_input (missing, not a
/// regular file), permission.
std::unique_ptr<File> open_to_read(const std::string& path, FileSystem& files = posix_file_system());
/// The whole content of a regular file. Throws as open_to_read(), and data (longer than max_bytes).
std::string read_file(const std::string& path, uint64_t max_bytes, FileSystem& files = posix_file_system());

/// Where files go that nobody keeps: TMPDIR, else /tmp. Throws cannot_create where that is not a folder.
std::string temporary_folder();
bool file_exists(const std::string& path);
/// The path of a file that comes with this program: beside it, as it is built, or in `installed`, the folder where
/// `cmake --install` puts it, seen from that of the program ("../lib/stoker"). Empty: it is at neither place.
std::string find_beside_program(const std::string& name, const std::string& installed);
uint64_t free_bytes(const std::string& directory);  ///< for an unprivileged user; 0 when unknown

/// An error of a call that changes files. As errno_error(), but a name that is missing is not a wrong input: somebody
/// removed the folder while it was in use.
Error output_error(int error_number, const std::string& action, const std::string& path, ErrorKind otherwise);

/// Creates a file that must not exist, writes it piece by piece, and is only good after finish().
class CheckedWriter {
 public:
  /// Throws cannot_create / permission / io.
  explicit CheckedWriter(std::string path, FileSystem& files = posix_file_system());
  ~CheckedWriter();                                    ///< removes the file unless finish() returned
  CheckedWriter& operator=(CheckedWriter&&) = delete;  // not copied, not moved

  void write(const void* bytes, uint64_t count);
  void finish();  ///< fsync and close, both checked

 private:
  FileSystem& files_;
  std::string path_;
  std::unique_ptr<File> file_;
  bool finished_ = false;
};

/// The folder that a path lies in: "." for a name alone, "/" for one below it.
std::string parent_of(const std::string& path);
/// The name under which this process writes a file that gets the name `path` once it is whole. remove_temporaries_of()
/// finds those of other processes, and errors name `path`.
std::string temporary_of(const std::string& path);
/// A path, which begins with '/', as other programs read it: "file:///data/my%20runs".
std::string file_uri(const std::string& path);
/// The path in a text of file_uri(); "" for any other text.
std::string path_of_file_uri(std::string_view uri);
/// Replaces `path` by rename, so that a reader sees the old or the new content, never half of one.
/// `durable` also fsyncs file and directory.
void write_file_atomically(const std::string& path, std::string_view content, bool durable,
                           FileSystem& files = posix_file_system());
/// Removes what write_file_atomically() of processes that are gone left beside `path`: they were killed.
void remove_temporaries_of(const std::string& path, FileSystem& files = posix_file_system());
/// Appends in one write, so that readers see whole lines; creates the file. What a failed write left is cut off again.
/// `durable` also fsyncs the file, but not its name. Throws io.
void append_file(const std::string& path, std::string_view content, bool durable,
                 FileSystem& files = posix_file_system());
/// Cuts off what follows the last newline: the half of a line that a killed process or a full disk left. Creates
/// the file when it is missing. Returns the bytes cut. Throws io.
uint64_t cut_half_line(const std::string& path, FileSystem& files = posix_file_system());
/// fsync of a directory: makes renames inside it survive a power loss.
void sync_directory(const std::string& directory, FileSystem& files = posix_file_system());
/// mkdir -p. Throws cannot_create or permission.
void make_directories(const std::string& directory, FileSystem& files = posix_file_system());
/// Removes a file, a link, or a directory with all that is in it; follows no link. Returns 0 (also when nothing is
/// there) or the errno of the first thing that stays.
int remove_tree(const std::string& path, FileSystem& files = posix_file_system());

/// An exclusive lock on `path`, held by an open file description: the kernel drops it when the process dies,
/// so there are no stale locks. The file names the holder.
class LockFile {
 public:
  /// Throws run_dir_in_use naming the holder, within a second; `what` is locked, `hint` is the remedy.
  explicit LockFile(const std::string& path, const std::string& what = "run directory",
                    const std::string& hint = "wait for it, stop it, or choose another --run-dir");
  ~LockFile();
  LockFile& operator=(LockFile&&) = delete;  // not copied, not moved

 private:
  int fd_ = -1;
};

// The lines of a file, one after the other, in bounded memory.

class LineReader {
 public:
  /// Opens as read_file() does, and throws as it does. Lines of more than `max_line_bytes` are refused.
  LineReader(std::string path, uint64_t max_line_bytes, FileSystem& files = posix_file_system());

  /// The next line, without its LF; false at the end. What follows the last LF is a line, too.
  /// Throws Error{data} with file:line for a line that is too long, Error{io}.
  bool next(std::string& line);

 private:
  bool fill();

  const std::string path_;
  const uint64_t max_line_bytes_;
  std::unique_ptr<File> file_;
  std::vector<char> block_;
  size_t at_ = 0, filled_ = 0;  ///< in block_
  int64_t number_ = 0;          ///< number of the line that is read, from 1
};

}  // namespace stoker::core
