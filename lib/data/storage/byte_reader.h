// SPDX-License-Identifier: Apache-2.0
// Bytes that can be read at any place: a file, or memory (which is how tests and fuzzers look at archives).
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/format.h"

namespace stoker::data {

// Reading one file of a data set: never blocks on odd files, distinguishes errors of the storage from errors of
// the file.

/// The state of a file at the scan; a file that has changed since is not the sample it was.
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

/// Immutable after construction; safe from any thread.
class ByteReader {
 public:
  virtual ~ByteReader() = default;
  virtual uint64_t size() const = 0;  ///< bytes
  /// The path, for messages.
  virtual const std::string& name() const = 0;
  /// Copies `count` bytes from `at` on; all of them lie inside. Throws core::Error{io} when the storage
  /// fails, {data} when the file has become shorter.
  virtual void read(uint64_t at, void* bytes, uint64_t count) const = 0;
};

/// The SHA-256 of everything in it: 64 lower-case hexadecimal digits, as sha256sum prints them.
std::string sha256_of(const ByteReader& file);

/// Borrows the bytes.
class MemoryBytes : public ByteReader {
 public:
  MemoryBytes(std::string name, const uint8_t* bytes, uint64_t size)
      : name_(std::move(name)), bytes_(bytes), size_(size) {}

  uint64_t size() const override { return size_; }
  const std::string& name() const override { return name_; }
  void read(uint64_t at, void* bytes, uint64_t count) const override {
    if (count > 0) std::memcpy(bytes, bytes_ + at, count);
  }

 private:
  const std::string name_;
  const uint8_t* const bytes_;
  const uint64_t size_;
};

/// A regular file held open.
class FileBytes : public ByteReader {
 public:
  /// Throws core::Error{no_input, permission} when there is no regular file of that name.
  explicit FileBytes(std::string path);
  ~FileBytes() override;
  FileBytes& operator=(FileBytes&&) = delete;  // not copied, not moved

  uint64_t size() const override { return static_cast<uint64_t>(stamp_.size); }
  const std::string& name() const override { return path_; }
  const FileStamp& stamp() const { return stamp_; }
  void read(uint64_t at, void* bytes, uint64_t count) const override;
  /// As read(), but returns an error of the file as a value: "" or the cause. Throws core::Error{io} when
  /// the storage fails.
  std::string try_read(uint64_t at, void* bytes, uint64_t count) const;

 private:
  const std::string path_;
  int fd_ = -1;
  FileStamp stamp_;
};

// Bounds-checked reading of untrusted bytes: what lies outside reads as zero.

class ByteView {
 public:
  ByteView(const uint8_t* bytes, uint64_t size) : bytes_(bytes), size_(size) {}

  uint64_t size() const { return size_; }
  const uint8_t* data() const { return bytes_; }
  bool has(uint64_t at, uint64_t count) const { return at <= size_ && count <= size_ - at; }
  uint32_t u8(uint64_t at) const { return has(at, 1) ? bytes_[at] : 0; }
  uint32_t big16(uint64_t at) const { return u8(at) << 8 | u8(at + 1); }
  uint32_t big32(uint64_t at) const { return big16(at) << 16 | big16(at + 2); }
  uint32_t little16(uint64_t at) const { return u8(at) | u8(at + 1) << 8; }
  uint32_t little24(uint64_t at) const { return little16(at) | u8(at + 2) << 16; }
  uint32_t little32(uint64_t at) const { return little16(at) | little16(at + 2) << 16; }
  bool matches(uint64_t at, std::string_view text) const {
    return has(at, text.size()) && std::memcmp(bytes_ + at, text.data(), text.size()) == 0;
  }
  /// The part from `at` on, at most `count` bytes long.
  ByteView part(uint64_t at, uint64_t count) const {
    if (at >= size_) return {bytes_, 0};
    return {bytes_ + at, count < size_ - at ? count : size_ - at};
  }

 private:
  const uint8_t* bytes_;
  uint64_t size_;
};

// The kind of a file, from its first bytes.

enum class ImageFormat { unknown, jpeg, png, bmp, webp, tiff, pnm, gif, jpeg2000 };

/// A format that is read, or unknown.
ImageFormat image_format(const ByteView& file);
/// For a file of another kind: its name and the command that makes a picture of it. Never empty.
std::string unread_kind(const ByteView& file);
/// Reasons hold commands, as unread_kind(): where `name` is a file, it takes the place of FILE in them.
std::string reason_for(const std::string& name, const std::string& reason);
/// "name: reason", as reason_for().
std::string bad_file_text(const std::string& name, const std::string& reason);
/// Whether these are the first bytes of a picture of any format, read or not. 32 bytes are enough.
bool is_picture(const ByteView& file);

}  // namespace stoker::data
