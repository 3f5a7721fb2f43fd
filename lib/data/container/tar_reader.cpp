// SPDX-License-Identifier: Apache-2.0
#include "data/container/tar_reader.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "core/format.h"

namespace stoker::data {
namespace {

constexpr uint64_t kWindowBytes = 64 << 10;

}  // namespace

/// The fields that extension entries define for the next entry.
struct TarReader::Extensions {
  bool has_pax = false, has_long_name = false, has_long_link = false;
  PaxRecords pax;
  std::string long_name;
};

void TarReader::fail(const std::string& cause) const {
  throw core::Error(core::ErrorKind::data,
                    core::format("{}: byte {}: {}", core::printable(archive_.name()), at_, cause),
                    "get the file again, or write it again");
}

/// `count` bytes from `at` on, which lie inside the archive; valid until the next call.
const uint8_t* TarReader::view(uint64_t at, uint64_t count) {
  if (at < window_at_ || count > window_.size() || at - window_at_ > window_.size() - count) {
    const uint64_t wanted = std::min(std::max(count, kWindowBytes), archive_.size() - at);
    window_.resize(wanted);
    window_at_ = at;
    archive_.read(at, window_.data(), wanted);
  }
  return window_.data() + (at - window_at_);
}

void TarReader::take_extension(const TarHeader& header, Extensions& extensions) {
  if (header.size == 0 || header.size > kMaxTarExtension) {
    fail(core::format("an extension header of {} bytes; 1 to {} are read", header.size, kMaxTarExtension));
  }
  const uint64_t content_at = at_ + kTarBlock;
  const std::string_view text(reinterpret_cast<const char*>(view(content_at, header.size)), header.size);
  bool& seen = header.type == TarType::gnu_long_name   ? extensions.has_long_name
               : header.type == TarType::gnu_long_link ? extensions.has_long_link
                                                       : extensions.has_pax;
  if (header.type == TarType::pax_global) {
    PaxRecords records;
    if (const std::string problem = read_pax_records(text, records); !problem.empty()) fail(problem);
    if (records.path || records.size) fail("a global pax header that names or sizes all entries");
    return;
  }
  if (seen) fail("two extension headers of one kind for one entry");
  seen = true;
  if (header.type == TarType::pax) {
    if (const std::string problem = read_pax_records(text, extensions.pax); !problem.empty()) fail(problem);
  } else if (header.type == TarType::gnu_long_name) {
    extensions.long_name = text.substr(0, text.find('\0'));
    if (extensions.long_name.empty() || extensions.long_name.size() > kMaxTarName) {
      fail("a long name that is empty or too long");
    }
  }
}

bool TarReader::next(TarEntry& entry) {
  Extensions extensions;
  for (;;) {
    if (at_ > archive_.size() || archive_.size() - at_ < kTarBlock) {
      fail("cut short: there is no end-of-archive block");
    }
    TarHeader header;
    if (const std::string problem = read_tar_header(view(at_, kTarBlock), header); !problem.empty()) {
      fail(problem);
    }
    const bool extended = extensions.has_pax || extensions.has_long_name || extensions.has_long_link;
    if (header.type == TarType::end) {
      if (extended) fail("an extension header without an entry behind it");
      return false;
    }
    const bool is_extension = header.type == TarType::pax || header.type == TarType::pax_global ||
                              header.type == TarType::gnu_long_name || header.type == TarType::gnu_long_link;
    if (!is_extension && header.type != TarType::regular && extensions.pax.size.value_or(0) != 0) {
      fail("a pax header that gives a size to something that is not a regular file");
    }
    const uint64_t size = !is_extension && extensions.pax.size ? *extensions.pax.size : header.size;
    const uint64_t offset = at_ + kTarBlock, left = archive_.size() - offset;
    if (size > left || tar_padding(size) > left - size) {
      fail(core::format("cut short: an entry of {} bytes, {} are left", size, left));
    }
    if (is_extension) take_extension(header, extensions);
    const uint64_t header_at = at_;
    at_ = offset + size + tar_padding(size);
    if (is_extension) continue;
    entry.name = extensions.pax.path        ? *extensions.pax.path
                 : extensions.has_long_name ? extensions.long_name
                                            : header.name;
    extensions = Extensions();
    if (header.type == TarType::other) ++passed_over_;
    if (header.type != TarType::regular) continue;
    if (entry.name.empty()) {
      at_ = header_at;
      fail("an entry without a name");
    }
    if (entry.name.back() == '/') {  // a folder, in the oldest archives; the full name decides
      if (size == 0) continue;
      at_ = header_at;
      fail("a link, device or directory with content");
    }
    entry.header_at = header_at;
    entry.offset = offset;
    entry.size = size;
    return true;
  }
}

std::string TarReader::content_of(const TarEntry& entry, uint64_t max_bytes) {
  if (entry.size > max_bytes) {
    throw core::Error(core::ErrorKind::data,
                      core::format("{}/{} has {} bytes; at most {} are read", core::printable(archive_.name()),
                                   core::printable(entry.name), entry.size, max_bytes));
  }
  if (entry.size == 0) return "";
  return {reinterpret_cast<const char*>(view(entry.offset, entry.size)), entry.size};
}

namespace {

constexpr uint64_t kMaxNumber = std::numeric_limits<int64_t>::max();

/// Where a field lies in the block.
struct Field {
  size_t at, length;
};
constexpr Field kName{0, 100}, kMode{100, 8}, kUser{108, 8}, kGroup{116, 8}, kSize{124, 12}, kTime{136, 12},
    kChecksum{148, 8}, kMagic{257, 8}, kDeviceMajor{329, 8}, kDeviceMinor{337, 8}, kPrefix{345, 155};
constexpr size_t kTypeAt = 156;
constexpr std::string_view kPosixMagic("ustar\0", 6), kGnuMagic("ustar  \0", 8);

std::string_view bytes_of(const uint8_t* block, Field field) {
  return {reinterpret_cast<const char*>(block) + field.at, field.length};
}

/// Up to the first NUL.
std::string_view text_of(const uint8_t* block, Field field) {
  const std::string_view bytes = bytes_of(block, field);
  return bytes.substr(0, bytes.find('\0'));
}

/// Octal digits with spaces before and a NUL or space behind; nothing at all is 0.
bool read_octal(std::string_view bytes, uint64_t& value) {
  size_t at = std::min(bytes.find_first_not_of(' '), bytes.size());
  value = 0;
  for (; at < bytes.size() && bytes[at] >= '0' && bytes[at] <= '7'; ++at) {
    value = value * 8 + static_cast<uint64_t>(bytes[at] - '0');  // at most 12 digits: 36 bits
  }
  return bytes.find_first_not_of(std::string_view("\0 ", 2), at) == std::string_view::npos;
}

/// Octal, or GNU's big-endian binary behind a byte 0x80.
bool read_number(std::string_view bytes, uint64_t& value) {
  const auto first = static_cast<uint8_t>(bytes[0]);
  if (first < 0x80) return read_octal(bytes, value);
  if (first != 0x80) return false;  // negative, or beyond 64 bits
  value = 0;
  for (const char c : bytes.substr(1)) {
    if (value > kMaxNumber >> 8) return false;
    value = value << 8 | static_cast<uint8_t>(c);
  }
  return true;
}

uint64_t checksum_of(const uint8_t* block) {
  uint64_t sum = kChecksum.length * ' ';
  for (size_t i = 0; i < kTarBlock; ++i) {
    if (i < kChecksum.at || i >= kChecksum.at + kChecksum.length) sum += block[i];
  }
  return sum;
}

TarType type_of(char flag) {
  switch (flag) {
    case '\0':
    case '0':
    case '7': return TarType::regular;
    case '5': return TarType::directory;
    case 'x': return TarType::pax;
    case 'g': return TarType::pax_global;
    case 'L': return TarType::gnu_long_name;
    case 'K': return TarType::gnu_long_link;
    default: return TarType::other;
  }
}

/// Decimal digits up to `end`; false when there is anything else, or nothing.
bool read_decimal(std::string_view digits, uint64_t& value) {
  value = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9' || value > (kMaxNumber - 9) / 10) return false;
    value = value * 10 + static_cast<uint64_t>(c - '0');
  }
  return !digits.empty();
}

std::string take_record(std::string_view keyword, std::string_view value, PaxRecords& records) {
  if (keyword.substr(0, 11) == "GNU.sparse.") return "a sparse file, which is not read";
  if (keyword == "path") {
    if (records.path) return "pax header with two paths";
    if (value.empty() || value.size() > kMaxTarName || value.find('\0') != std::string_view::npos)
      return "pax header with a path that is empty, too long or holds a NUL byte";
    records.path = std::string(value);
  } else if (keyword == "size") {
    uint64_t size = 0;
    if (records.size) return "pax header with two sizes";
    if (!read_decimal(value, size)) return "pax header with a size that is not a number";
    records.size = size;
  }
  return "";
}

void put(std::string& block, Field field, std::string_view text) { text.copy(block.data() + field.at, field.length); }

void put_octal(std::string& block, Field field, uint64_t value) {
  put(block, field, core::format("{:0{}o}", value, field.length - 1));
}

std::string ustar_block(std::string_view prefix, std::string_view name, uint64_t size, char type) {
  std::string block(kTarBlock, '\0');
  put(block, kName, name);
  put_octal(block, kMode, 0644);
  put_octal(block, kUser, 0);
  put_octal(block, kGroup, 0);
  put_octal(block, kSize, size);
  put_octal(block, kTime, 0);
  block[kTypeAt] = type;
  put(block, kMagic,
      std::string_view("ustar\0"
                       "00",
                       8));
  put_octal(block, kDeviceMajor, 0);
  put_octal(block, kDeviceMinor, 0);
  put(block, kPrefix, prefix);
  const uint64_t sum = checksum_of(reinterpret_cast<const uint8_t*>(block.data()));
  put(block, kChecksum, core::format("{:06o}", sum) + '\0' + ' ');
  return block;
}

/// Finds the slash at which a name falls into prefix and name; false when it does not fit.
bool split_name(const std::string& name, std::string_view& prefix, std::string_view& rest) {
  rest = name;
  prefix = {};
  if (name.size() <= kName.length) return true;
  const size_t slash = name.find('/', name.size() - kName.length - 1);
  if (slash == std::string::npos || slash == 0 || slash > kPrefix.length || slash + 1 == name.size()) return false;
  prefix = std::string_view(name).substr(0, slash);
  rest = std::string_view(name).substr(slash + 1);
  return true;
}

/// "27 path=...\n": the number counts itself.
std::string pax_record(const std::string& keyword, const std::string& value) {
  const size_t without_digits = keyword.size() + value.size() + 3;
  size_t length = without_digits + 1;
  while (without_digits + std::to_string(length).size() != length) ++length;
  return core::format("{} {}={}\n", length, keyword, value);
}

}  // namespace

std::string read_tar_header(const uint8_t block[kTarBlock], TarHeader& header) {
  header = TarHeader();
  if (std::all_of(block, block + kTarBlock, [](uint8_t byte) { return byte == 0; })) return "";
  const std::string_view magic = bytes_of(block, kMagic);
  const bool posix = magic.substr(0, kPosixMagic.size()) == kPosixMagic;
  if (!posix && magic != kGnuMagic) return "not a header of a POSIX or GNU tar archive";
  uint64_t sum = 0;
  if (!read_octal(bytes_of(block, kChecksum), sum) || sum != checksum_of(block)) {
    return "a header whose checksum does not fit";
  }
  if (!read_number(bytes_of(block, kSize), header.size)) return "a header with a size that is not a number";
  header.name = text_of(block, kName);
  const std::string_view prefix = posix ? text_of(block, kPrefix) : std::string_view();
  if (!prefix.empty()) header.name = std::string(prefix) + "/" + header.name;
  header.type = type_of(static_cast<char>(block[kTypeAt]));
  const char flag = static_cast<char>(block[kTypeAt]);
  const bool without_content = header.type == TarType::directory || (flag >= '1' && flag <= '6');
  if (without_content && header.size != 0) return "a link, device or directory with content";
  return "";
}

std::string read_pax_records(std::string_view text, PaxRecords& records) {
  records = PaxRecords();
  while (!text.empty()) {
    const size_t space = text.find(' ');
    uint64_t length = 0;
    if (space == std::string_view::npos || space > 20 || !read_decimal(text.substr(0, space), length) ||
        length > text.size() || length < space + 3 || text[length - 1] != '\n') {
      return "a damaged pax header";
    }
    const std::string_view record = text.substr(space + 1, length - space - 2);
    const size_t equals = record.find('=');
    if (equals == std::string_view::npos || equals == 0) return "a damaged pax header";
    if (std::string problem = take_record(record.substr(0, equals), record.substr(equals + 1), records);
        !problem.empty()) {
      return problem;
    }
    text.remove_prefix(length);
  }
  return "";
}

std::string tar_header_text(const std::string& name, uint64_t size) {
  constexpr uint64_t kLargestOctal = (uint64_t{1} << 33) - 1;
  if (name.empty() || name.size() > kMaxTarName || size > kLargestOctal) {
    throw core::Error(core::ErrorKind::bug, "a tar entry with a name or size out of range");
  }
  const bool ascii = std::all_of(name.begin(), name.end(), [](char c) { return c >= ' ' && c < 0x7F; });
  std::string_view prefix, rest;
  if (ascii && split_name(name, prefix, rest)) return ustar_block(prefix, rest, size, '0');
  const std::string record = pax_record("path", name);
  std::string text = ustar_block("", "pax_header", record.size(), 'x');
  text += record;
  text.append(tar_padding(record.size()), '\0');
  // Programs without pax support see a shortened name, which must not look like that of a folder.
  std::string_view shortened = std::string_view(name).substr(0, kName.length);
  while (shortened.size() > 1 && shortened.back() == '/') shortened.remove_suffix(1);
  return text + ustar_block("", shortened, size, '0');
}

}  // namespace stoker::data
