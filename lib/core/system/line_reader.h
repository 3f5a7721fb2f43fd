// SPDX-License-Identifier: Apache-2.0
// The lines of a file, one after the other, in bounded memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/system/file_system.h"

namespace stoker::core {

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
  int64_t number_ = 0;          ///< of the line that is read, from 1
};

}  // namespace stoker::core
