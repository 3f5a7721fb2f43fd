// SPDX-License-Identifier: Apache-2.0
#include "data/archive/zip_directory.h"

#include <zlib.h>

#include <algorithm>
#include <new>
#include <optional>
#include <vector>

#include "core/error.h"
#include "core/format.h"
#include "data/storage/byte_reader.h"

namespace stoker::data {
namespace {

constexpr uint64_t kEndBytes = 22, kEnd64Bytes = 56, kLocatorBytes = 20, kEntryBytes = 46, kLocalBytes = 30;
constexpr uint64_t kMaxComment = 0xFFFF;
constexpr uint64_t kMaxDirectory = 64 << 20;  // bytes: some 600,000 members
constexpr uint32_t kFull32 = 0xFFFFFFFF;      // the true number stands in a zip64 record

struct Directory {
  uint64_t begin = 0, bytes = 0, members = 0;
};

/// Reads one archive; the file outlives it.
class ZipReader {
 public:
  explicit ZipReader(const ByteReader& file) : file_(file) {}

  std::vector<ZipMember> members() {
    const Directory directory = find_directory();
    const std::string bytes = part(directory.begin, directory.bytes);
    const ByteView view = view_of(bytes);
    std::vector<ZipMember> members;
    uint64_t at = 0;
    for (uint64_t i = 0; i < directory.members; ++i) members.push_back(read_member(view, at, directory.begin));
    if (at != directory.bytes) fail("its directory has bytes that belong to no member");
    refuse_overlap();
    std::sort(members.begin(), members.end(), [](const ZipMember& a, const ZipMember& b) { return a.name < b.name; });
    for (size_t i = 1; i < members.size(); ++i) {
      if (members[i].name == members[i - 1].name) fail(core::printable(members[i].name) + " is there twice");
    }
    return members;
  }

 private:
  struct Extent {
    uint64_t begin = 0, end = 0;
  };

  [[noreturn]] void fail(const std::string& reason) const {
    throw core::Error(core::ErrorKind::data, core::printable(file_.name()) + ": damaged zip archive: " + reason,
                      "copy the file again");
  }

  static ByteView view_of(const std::string& bytes) {
    return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
  }
  static uint64_t little64(const ByteView& view, uint64_t at) {
    return view.little32(at) | static_cast<uint64_t>(view.little32(at + 4)) << 32;
  }

  std::string part(uint64_t at, uint64_t count) const {
    std::string bytes(count, '\0');
    file_.read(at, bytes.data(), count);
    return bytes;
  }

  Directory find_directory() const {
    const uint64_t tail_bytes = std::min(file_.size(), kEndBytes + kMaxComment);
    const uint64_t tail_begin = file_.size() - tail_bytes;
    const std::string tail = part(tail_begin, tail_bytes);
    const ByteView view = view_of(tail);
    for (uint64_t at = tail_bytes < kEndBytes ? 0 : tail_bytes - kEndBytes + 1; at-- > 0;) {
      if (!view.matches(at, "PK\5\6") || at + kEndBytes + view.little16(at + 20) != tail_bytes) continue;
      Directory directory{view.little32(at + 16), view.little32(at + 12), view.little16(at + 10)};
      uint64_t end = tail_begin + at;  // of the directory
      const uint64_t disks = view.little32(at + 4);
      if (const auto large = find_directory64(end)) {
        directory = large->first;
        end = large->second;
      } else if (disks != 0 || view.little16(at + 8) != directory.members) {
        fail("it is spread over several files");
      }
      if (directory.begin > end || directory.bytes != end - directory.begin) {
        fail("its directory is not where its end record points");
      }
      if (directory.bytes > kMaxDirectory || directory.members > directory.bytes / kEntryBytes) {
        fail(core::format("its directory cannot have {} members", directory.members));
      }
      return directory;
    }
    fail("its end is missing: the file was cut short");
  }

  /// The directory of zip64 and where it must end, if its records stand before `end`.
  std::optional<std::pair<Directory, uint64_t>> find_directory64(uint64_t end) const {
    if (end < kLocatorBytes + kEnd64Bytes) return std::nullopt;
    const std::string locator = part(end - kLocatorBytes, kLocatorBytes);
    if (!view_of(locator).matches(0, "PK\6\7")) return std::nullopt;
    const uint64_t at = little64(view_of(locator), 8);
    if (at > end - kLocatorBytes - kEnd64Bytes) fail("its zip64 end lies outside the file");
    const std::string record = part(at, kEnd64Bytes);
    const ByteView view = view_of(record);
    if (!view.matches(0, "PK\6\6")) fail("its zip64 end is missing");
    return std::pair(Directory{little64(view, 48), little64(view, 40), little64(view, 32)}, at);
  }

  ZipMember read_member(const ByteView& view, uint64_t& at, uint64_t directory_begin) {
    if (!view.matches(at, "PK\1\2") || !view.has(at, kEntryBytes)) fail("an entry of its directory is damaged");
    const uint64_t name_bytes = view.little16(at + 28), extra_bytes = view.little16(at + 30);
    const uint64_t all = kEntryBytes + name_bytes + extra_bytes + view.little16(at + 32);
    if (!view.has(at, all)) fail("an entry of its directory is cut short");
    ZipMember member;
    member.name.assign(reinterpret_cast<const char*>(view.data()) + at + kEntryBytes, name_bytes);
    const std::string shown = core::printable(member.name);
    if ((view.little16(at + 8) & 1) != 0) fail(shown + " is encrypted");
    const uint32_t method = view.little16(at + 10);
    if (method != 0 && method != 8) fail(core::format("{} is compressed by method {}, not by deflate", shown, method));
    member.deflated = method == 8;
    member.checksum = view.little32(at + 16);
    uint64_t local = view.little32(at + 42);
    member.stored_bytes = view.little32(at + 20);
    member.bytes = view.little32(at + 24);
    read_extra(view.part(at + kEntryBytes + name_bytes, extra_bytes), member, local);
    at += all;

    if (local > directory_begin || kLocalBytes > directory_begin - local) fail(shown + " lies outside the file");
    const std::string header = part(local, kLocalBytes);
    const ByteView local_view = view_of(header);
    if (!local_view.matches(0, "PK\3\4") || local_view.little16(8) != method || local_view.little16(26) != name_bytes) {
      fail(shown + " has a header unlike its entry in the directory");
    }
    member.begin = local + kLocalBytes + name_bytes + local_view.little16(28);
    if (member.begin > directory_begin || member.stored_bytes > directory_begin - member.begin) {
      fail(shown + " lies outside the file");
    }
    if (part(local + kLocalBytes, name_bytes) != member.name) fail(shown + " has another name in its header");
    if (!member.deflated && member.bytes != member.stored_bytes) fail(shown + " is stored, but has two sizes");
    if (member.deflated && member.bytes / kMostInflated > member.stored_bytes) {
      fail(core::format("{} cannot inflate from {} to {} bytes", shown, member.stored_bytes, member.bytes));
    }
    extents_.push_back({local, member.begin + member.stored_bytes});
    return member;
  }

  /// Sizes and places of 64 bits, in the order of the standard: each only where the short field is full.
  void read_extra(const ByteView& extra, ZipMember& member, uint64_t& local) const {
    const bool long_bytes = member.bytes == kFull32, long_stored = member.stored_bytes == kFull32;
    const bool long_local = local == kFull32;
    if (!long_bytes && !long_stored && !long_local) return;
    for (uint64_t at = 0; extra.has(at, 4); at += 4 + extra.little16(at + 2)) {
      if (extra.little16(at) != 1) continue;
      const ByteView field = extra.part(at + 4, extra.little16(at + 2));
      if (field.size() < 8u * (long_bytes + long_stored + long_local)) break;
      uint64_t next = 0;
      const auto take = [&](bool wanted, uint64_t& number) {
        if (!wanted) return;
        number = little64(field, next);
        next += 8;
      };
      take(long_bytes, member.bytes);
      take(long_stored, member.stored_bytes);
      take(long_local, local);
      return;
    }
    fail(core::printable(member.name) + " lacks its 64-bit sizes");
  }

  /// Members over one another would let a small file hold much.
  void refuse_overlap() {
    std::sort(extents_.begin(), extents_.end(), [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
    for (size_t i = 1; i < extents_.size(); ++i) {
      if (extents_[i].begin < extents_[i - 1].end) fail("members lie over one another");
    }
  }

  const ByteReader& file_;
  std::vector<Extent> extents_;
};

}  // namespace

std::vector<ZipMember> read_zip_directory(const ByteReader& file) { return ZipReader(file).members(); }

namespace {

constexpr uint64_t kPiece = 1 << 20;  // bytes that are read or inflated at a time; zlib counts them in 32 bits

[[noreturn]] void fail_stored(const ByteReader& file, const std::string& name, const char* reason) {
  throw core::Error(core::ErrorKind::data, core::format("{}: {} {}", core::printable(file.name()), name, reason),
                    "copy the file again");
}

/// A stream of zlib that is freed in every case.
class Inflater {
 public:
  Inflater() {
    if (::inflateInit2(&stream_, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { ::inflateEnd(&stream_); }
  Inflater& operator=(Inflater&&) = delete;  // not copied, not moved

  z_stream& stream() { return stream_; }

 private:
  z_stream stream_{};
};

void inflate_into(const ByteReader& file, const Storage& storage, const std::string& name, uint8_t* bytes) {
  Inflater inflater;
  z_stream& stream = inflater.stream();
  std::vector<uint8_t> piece(std::min(kPiece, storage.stored_bytes));
  uint64_t read = 0, written = 0;
  uint8_t beyond = 0;  // where a stream of more bytes than promised would continue
  for (int result = Z_OK; result != Z_STREAM_END;) {
    if (stream.avail_in == 0 && read < storage.stored_bytes) {
      const uint64_t count = std::min<uint64_t>(piece.size(), storage.stored_bytes - read);
      file.read(storage.begin + read, piece.data(), count);
      read += count;
      stream.next_in = piece.data();
      stream.avail_in = static_cast<uInt>(count);
    }
    const uint64_t space = std::min(kPiece, storage.bytes - written);
    stream.next_out = space > 0 ? bytes + written : &beyond;
    stream.avail_out = space > 0 ? static_cast<uInt>(space) : 1;
    const uInt out_before = stream.avail_out, in_before = stream.avail_in;
    result = ::inflate(&stream, Z_NO_FLUSH);
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
      fail_stored(file, name, "is a damaged deflate stream");
    const uint64_t made = out_before - stream.avail_out;
    if (space == 0 && made > 0) fail_stored(file, name, "inflates to more bytes than it should");
    written += made;
    if (result != Z_STREAM_END && made == 0 && stream.avail_in == in_before && read == storage.stored_bytes) {
      fail_stored(file, name, "is a deflate stream that was cut short");
    }
  }
  if (written != storage.bytes) fail_stored(file, name, "inflates to fewer bytes than it should");
}

}  // namespace

void read_stored(const ByteReader& file, const Storage& storage, const std::string& name, void* bytes) {
  auto* const out = static_cast<uint8_t*>(bytes);
  if (storage.deflated) {
    inflate_into(file, storage, name, out);
  } else {
    file.read(storage.begin, out, storage.bytes);
  }
  if (storage.checksum == 0) return;
  uLong sum = ::crc32(0, nullptr, 0);
  for (uint64_t at = 0; at < storage.bytes; at += kPiece) {
    sum = ::crc32(sum, out + at, static_cast<uInt>(std::min(kPiece, storage.bytes - at)));
  }
  if (sum != storage.checksum) fail_stored(file, name, "does not fit its checksum");
}

}  // namespace stoker::data
