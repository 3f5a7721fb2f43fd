// SPDX-License-Identifier: Apache-2.0
#include "data/archive/inflate.h"

#include <zlib.h>

#include <algorithm>
#include <new>
#include <vector>

#include "core/error.h"
#include "core/format.h"

namespace stoker::data {
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
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  z_stream& stream() { return stream_; }

 private:
  z_stream stream_{};
};

void inflate_into(const ByteReader& file, const Storage& storage, const std::string& name, uint8_t* bytes) {
  Inflater inflater;
  z_stream& stream = inflater.stream();
  std::vector<uint8_t> piece(std::min(kPiece, storage.stored_bytes));
  uint64_t read = 0, written = 0;
  uint8_t beyond = 0;  // where a stream of more bytes than promised would go on
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
