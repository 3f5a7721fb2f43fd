// SPDX-License-Identifier: Apache-2.0
// The entries of a tar archive in order. Trusts nothing: every number is checked against the archive's size
// before it is used, and no entry is larger in memory than kMaxTarExtension.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/container/tar_header.h"
#include "data/storage/byte_reader.h"

namespace stoker::data {

struct TarEntry {
  std::string name;        ///< never empty; any bytes but NUL
  uint64_t header_at = 0;  ///< of the block right before the content
  uint64_t offset = 0;     ///< of the content, a multiple of 512; offset + size lies inside the archive
  uint64_t size = 0;       ///< bytes
};

/// Reads the archive in steps of a few ten KiB, skipping large contents. Not thread-safe.
class TarReader {
 public:
  /// Borrows the archive.
  explicit TarReader(const ByteReader& archive) : archive_(archive) {}

  /// The next regular file; directories, links and devices are passed over. False at the end-of-archive
  /// block. Throws core::Error{data} with path and place for an archive that is damaged or cut short.
  bool next(TarEntry& entry);
  /// Content of an entry just returned, of at most `max_bytes`. Throws core::Error{data} when it is larger.
  std::string content_of(const TarEntry& entry, uint64_t max_bytes);
  /// Links, devices and the like so far: what next() passed over, without directories.
  int64_t passed_over() const { return passed_over_; }

 private:
  struct Extensions;
  [[noreturn]] void fail(const std::string& cause) const;
  const uint8_t* view(uint64_t at, uint64_t count);
  void take_extension(const TarHeader& header, Extensions& extensions);

  const ByteReader& archive_;
  uint64_t at_ = 0;  ///< of the next header
  int64_t passed_over_ = 0;
  uint64_t window_at_ = 0;
  std::vector<uint8_t> window_;
};

}  // namespace stoker::data
