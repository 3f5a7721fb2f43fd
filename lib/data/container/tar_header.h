// SPDX-License-Identifier: Apache-2.0
// One 512-byte block of a tar archive, and the records of a pax extension: read strictly, written plainly.
// Formats: POSIX.1-2017 (pax utility: ustar interchange format, pax extended headers) and, for reading, GNU
// tar's long names and binary sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stoker::data {

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

/// What pax records say about the next entry.
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

}  // namespace stoker::data
