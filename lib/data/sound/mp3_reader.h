// SPDX-License-Identifier: Apache-2.0
// Frames of MP3 files, decoded by libmpg123 as libsndfile does, but without reading all headers in front
// of an excerpt: where frames lie is kept. The only file that includes it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

struct mpg123_handle_struct;

namespace stoker::data {

/// Where the bytes come from.
struct Mp3Bytes {
  void* self;
  ssize_t (*read)(void* self, void* bytes, size_t count);
  off_t (*seek)(void* self, off_t offset, int whence);
};

class Mp3Reader {
 public:
  /// `name` distinguishes files, and states of one. `bytes` at its beginning.
  Mp3Reader(const Mp3Bytes& bytes, const std::string& name);

  /// How long the sound is; below 0: it cannot be read.
  int64_t frames() const { return frames_; }
  bool seek(int64_t frame);
  /// Writes `count` frames of all channels; fewer where it ends or is damaged.
  int64_t read(float* out, int64_t count, int64_t channels);

 private:
  using Handle = std::unique_ptr<mpg123_handle_struct, void (*)(mpg123_handle_struct*)>;
  static Handle opened(const Mp3Bytes& bytes);

  Handle handle_;
  int64_t frames_ = -1;
};

}  // namespace stoker::data
