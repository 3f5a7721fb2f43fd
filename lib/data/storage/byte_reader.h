// SPDX-License-Identifier: Apache-2.0
// Bytes that can be read at any place: a file, or memory (which is how tests and fuzzers look at archives).
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "core/error.h"
#include "core/format.h"
#include "data/storage/sample_file.h"

namespace stoker::data {

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
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

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

}  // namespace stoker::data
