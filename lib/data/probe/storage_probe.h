// SPDX-License-Identifier: Apache-2.0
// How fast the storage under a data folder gives its own files: a sample of them, read once from storage and once from
// memory. Reads files, decodes no images.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stoker::data {

struct StorageSpeed {
  int64_t files_seen = 0;              ///< below the folder, at most kMaxFilesSeen
  int64_t files_read = 0;              ///< number of them that were measured
  int64_t bytes_read = 0;              ///< at most 8 MiB of each
  double cached_share = 0;             ///< share of those bytes that was in the page cache before, 0 to 1
  bool dropped = false;                ///< the kernel let go of them, so that the first reading came from storage
  double open_seconds = 0;             ///< median until the first 4 KiB are there; first reading
  double slow_open_seconds = 0;        ///< 95th percentile
  double bytes_per_second = 0;         ///< first reading, one file after the other
  double cached_bytes_per_second = 0;  ///< second reading
};

inline constexpr int64_t kMaxFilesSeen = 20'000;

/// One file that was read twice.
struct FileReading {
  int64_t bytes = 0;
  int64_t cached_bytes = 0;        ///< bytes that were in the page cache before
  int64_t still_cached_bytes = 0;  ///< after the kernel was requested to drop them
  double open_seconds = 0;         ///< first reading: until the first 4 KiB are there
  double first_seconds = 0;        ///< first reading, in all
  double second_seconds = 0;
};

/// The speed of a storage, from readings, all but files_seen. At least one reading.
StorageSpeed speed_of(const std::vector<FileReading>& readings);

/// Reads for at most about `seconds`. Throws Error{no_input} when the folder cannot be listed or has no file that can
/// be read. Pages of the sampled files leave the page cache and come back.
StorageSpeed probe_storage(const std::string& directory, double seconds);

}  // namespace stoker::data
