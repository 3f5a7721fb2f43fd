// SPDX-License-Identifier: Apache-2.0
// Reading one file of a data set: never blocks on odd files, distinguishes errors of the storage from errors of
// the file.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace stoker::data {

/// What the scan saw of a file; a file that has changed since is not the sample it was.
struct FileStamp {
  int64_t size = -1;        ///< bytes; -1: there was nothing to look at
  int64_t modified_ns = 0;  ///< modification time, nanoseconds since 1970
};

/// Reads the whole file, or the first `max_bytes` of a longer one, into the front of `buffer`, which only grows.
/// Returns "" or the cause in words, which makes a bad image. Throws core::Error{io} after three failures of the
/// storage, {os} when the process is out of descriptors, {permission} when the file may not be read.
std::string read_sample_file(const std::string& path, const FileStamp& stamp, std::vector<uint8_t>& buffer,
                             int64_t max_bytes = std::numeric_limits<int64_t>::max());

/// Calls `attempt` (0 or an errno) up to three times with growing pauses while it reports that the storage
/// failed (EIO, ESTALE, ETIMEDOUT); returns the last result.
int with_storage_retries(const std::function<int()>& attempt);
bool is_storage_error(int error_number);

}  // namespace stoker::data
