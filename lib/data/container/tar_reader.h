// SPDX-License-Identifier: Apache-2.0
// The entries of a tar archive in order. Trusts nothing: every number is checked against the archive's size
// before it is used, and no entry is larger in memory than kMaxTarExtension.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/storage/byte_reader.h"

namespace stoker::data {

// One 512-byte block of a tar archive, and the records of a pax extension: read strictly, written plainly.
// Formats: POSIX.1-2017 (pax utility: ustar interchange format, pax extended headers) and, for reading, GNU
// tar's long names and binary sizes.

inline constexpr uint64_t kTarBlock = 512;             ///< bytes
inline constexpr uint64_t kMaxTarExtension = 1 << 20;  ///< bytes of a pax header or a long name
inline constexpr uint64_t kMaxTarName = 64 << 10;      ///< bytes

enum class TarType { regular, directory, pax, pax_global, gnu_long_name, gnu_long_link, other, end };

struct TarHeader {
  TarType type = TarType::end;  ///< end: a block of zeros; regular: a folder too, where the full name ends in a slash
  std::string name;             ///< as it stands there; extensions may replace it
  uint64_t size = 0;            ///< bytes of content behind the header
};

/// Bytes from the end of a content of `size` bytes to the end of its last block.
inline uint64_t tar_padding(uint64_t size) { return (kTarBlock - size % kTarBlock) % kTarBlock; }

/// Reads one header block. Returns "" or what is wrong: no ustar magic, a checksum that does not fit, a
/// number that is none or does not fit 63 bits, content where there can be none.
std::string read_tar_header(const uint8_t block[kTarBlock], TarHeader& header);

/// The fields that pax records define for the next entry.
struct PaxRecords {
  std::optional<std::string> path;
  std::optional<uint64_t> size;
};

/// Reads the records of a pax header ("12 path=a/b\n"). Unknown keywords are passed over. Returns "" or what
/// is wrong: damaged records, the same keyword twice, an empty path, sparse files.
std::string read_pax_records(std::string_view text, PaxRecords& records);

/// The header blocks of a regular file: one ustar block, or a pax header before it where the name is not
/// plain ASCII or does not fit. Mode 0644, owner 0, time 0: the same bytes at any time and place. `name`:
/// UTF-8 without NUL, at most kMaxTarName bytes; size below 8 GiB.
std::string tar_header_text(const std::string& name, uint64_t size);

struct TarEntry {
  std::string name;        ///< never empty; any bytes but NUL
  uint64_t header_at = 0;  ///< position of the block right before the content
  uint64_t offset = 0;     ///< position of the content, a multiple of 512; offset + size lies inside the archive
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
  uint64_t at_ = 0;  ///< position of the next header
  int64_t passed_over_ = 0;
  uint64_t window_at_ = 0;
  std::vector<uint8_t> window_;
};

}  // namespace stoker::data
