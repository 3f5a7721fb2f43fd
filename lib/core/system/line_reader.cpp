// SPDX-License-Identifier: Apache-2.0
#include "core/system/line_reader.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/format.h"
#include "core/system/file.h"

namespace stoker::core {

LineReader::LineReader(std::string path, uint64_t max_line_bytes, FileSystem& files)
    : path_(std::move(path)),
      max_line_bytes_(max_line_bytes),
      file_(open_to_read(path_, files)),
      block_(size_t{64} << 10) {}

bool LineReader::next(std::string& line) {
  line.clear();
  ++number_;
  for (bool is_begun = false;; is_begun = true) {
    if (at_ == filled_ && !fill()) return is_begun;
    const char* const begin = block_.data() + at_;
    const char* const block_end = block_.data() + filled_;
    const char* const line_end = std::find(begin, block_end, '\n');
    if (line.size() + static_cast<uint64_t>(line_end - begin) > max_line_bytes_) {
      throw Error(ErrorKind::data,
                  format("{}:{}: line longer than {} bytes", printable(path_), number_, max_line_bytes_));
    }
    line.append(begin, line_end);
    at_ = static_cast<size_t>(line_end - block_.data());
    if (line_end == block_end) continue;
    ++at_;  // behind the LF
    return true;
  }
}

/// False at the end of the file.
bool LineReader::fill() {
  uint64_t got = 0;
  const int error_number = file_->read(block_.data(), block_.size(), got);
  if (error_number != 0) throw errno_error(error_number, "read", printable(path_), ErrorKind::io);
  at_ = 0;
  filled_ = static_cast<size_t>(got);
  return got > 0;
}

}  // namespace stoker::core
