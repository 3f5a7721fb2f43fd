// SPDX-License-Identifier: Apache-2.0
#include "data/sound/mp3_reader.h"

#include <dlfcn.h>
#include <mpg123.h>

#include <unordered_map>
#include <vector>

#include "core/system/mutex.h"

// libsndfile, which recognises the files, opens them with libmpg123 first; that prints what it finds damaged to stderr,
// and libsndfile has no switch: every handle of this process is made quiet here.
extern "C" mpg123_handle* mpg123_new(const char* decoder, int* error) {
  using New = mpg123_handle* (*)(const char*, int*);
  static const auto make = reinterpret_cast<New>(::dlsym(RTLD_NEXT, "mpg123_new"));
  mpg123_handle* const handle = make == nullptr ? nullptr : make(decoder, error);
  if (handle != nullptr) ::mpg123_param(handle, MPG123_ADD_FLAGS, MPG123_QUIET, 0);
  return handle;
}

namespace stoker::data {
namespace {

// Frames that are decoded in front of an excerpt: the bits of one may lie in frames before, 255 bytes back where a
// frame of 8 kbit/s has 11.
constexpr long kFramesBefore = 26;

/// The place of every `step`th frame of one file.
struct Mp3Index {
  std::vector<off_t> places;
  off_t step = 0;
  int64_t frames = 0;
};

/// The indexes of this process: of each file the first to come reads all headers.
class Mp3Indexes {
 public:
  std::shared_ptr<const Mp3Index> find(const std::string& name) {
    const core::MutexLock lock(mutex_);
    const auto found = kept_.find(name);
    return found == kept_.end() ? nullptr : found->second;
  }
  void keep(const std::string& name, std::shared_ptr<const Mp3Index> index) {
    constexpr size_t kMost = 4096;  // of 8 KB
    const core::MutexLock lock(mutex_);
    if (kept_.size() < kMost) kept_.emplace(name, std::move(index));
  }

 private:
  core::Mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const Mp3Index>> kept_ STOKER_GUARDED_BY(mutex_);
};

Mp3Indexes& mp3_indexes() {
  static Mp3Indexes indexes;
  return indexes;
}

}  // namespace

Mp3Reader::Handle Mp3Reader::opened(const Mp3Bytes& bytes) {
  [[maybe_unused]] static const int ready = ::mpg123_init();
  Handle handle(::mpg123_new(nullptr, nullptr), ::mpg123_delete);
  if (handle == nullptr) return handle;
  // Parameters as libsndfile has them.
  ::mpg123_param(handle.get(), MPG123_REMOVE_FLAGS, MPG123_AUTO_RESAMPLE, 0);
  ::mpg123_param(handle.get(), MPG123_ADD_FLAGS, MPG123_FORCE_FLOAT | MPG123_GAPLESS | MPG123_NO_FRANKENSTEIN, 0);
  ::mpg123_param(handle.get(), MPG123_PREFRAMES, kFramesBefore, 0);
  long rate = 0;
  int channels = 0, encoding = 0;
  const bool is_open =
      bytes.seek(bytes.self, 0, SEEK_SET) == 0 &&
      ::mpg123_replace_reader_handle(handle.get(), bytes.read, bytes.seek, nullptr) == MPG123_OK &&
      ::mpg123_open_handle(handle.get(), bytes.self) == MPG123_OK &&
      ::mpg123_getformat(handle.get(), &rate, &channels, &encoding) == MPG123_OK &&
      ::mpg123_format_none(handle.get()) == MPG123_OK &&  // all frames have the format of the first, or end the sound
      ::mpg123_format(handle.get(), rate, channels, MPG123_ENC_FLOAT_32) == MPG123_OK;
  if (!is_open) handle.reset();
  return handle;
}

Mp3Reader::Mp3Reader(const Mp3Bytes& bytes, const std::string& name) : handle_(opened(bytes)) {
  std::shared_ptr<const Mp3Index> index = mp3_indexes().find(name);
  if (index == nullptr) {
    off_t *places = nullptr, step = 0;
    size_t count = 0;
    if (handle_ == nullptr || ::mpg123_scan(handle_.get()) != MPG123_OK ||
        ::mpg123_index(handle_.get(), &places, &step, &count) != MPG123_OK) {
      return;
    }
    index = std::make_shared<const Mp3Index>(
        Mp3Index{{places, places + count}, step, static_cast<int64_t>(::mpg123_length(handle_.get()))});
    mp3_indexes().keep(name, index);
    handle_ = opened(bytes);  // the first excerpt is read as all later ones
  }
  if (handle_ == nullptr || ::mpg123_set_index(handle_.get(), const_cast<off_t*>(index->places.data()), index->step,
                                               index->places.size()) != MPG123_OK) {
    return;
  }
  frames_ = index->frames;
}

bool Mp3Reader::seek(int64_t frame) { return ::mpg123_seek(handle_.get(), frame, SEEK_SET) == frame; }

int64_t Mp3Reader::read(float* out, int64_t count, int64_t channels) {
  const auto frame = static_cast<size_t>(channels) * sizeof(float), wanted = static_cast<size_t>(count) * frame;
  size_t done = 0;
  while (done < wanted) {
    size_t got = 0;
    const int status = ::mpg123_read(handle_.get(), reinterpret_cast<unsigned char*>(out) + done, wanted - done, &got);
    done += got;
    if (status != MPG123_OK && status != MPG123_NEW_FORMAT) break;
    if (status == MPG123_OK && got == 0) break;
  }
  return static_cast<int64_t>(done / frame);
}

}  // namespace stoker::data
