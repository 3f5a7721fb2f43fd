// SPDX-License-Identifier: Apache-2.0
#include "data/container/tar_reader.h"

#include <algorithm>

namespace stoker::data {
namespace {

constexpr uint64_t kWindowBytes = 64 << 10;

}  // namespace

/// What extension entries say about the entry behind them.
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
      fail("a pax header that gives a size to what is no regular file");
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
    if (entry.name.back() == '/') {  // a folder, as the oldest archives say it; the full name decides
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

}  // namespace stoker::data
