// SPDX-License-Identifier: Apache-2.0
// Bytes as a pair of IDX files, plain or gzipped: the input is the length of the images file in two bytes,
// that file, and the labels file.
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "core/error.h"
#include "data/arrays/idx_source.h"
#include "fuzz_target.h"

namespace {

/// A folder in which the two files of a split are links to memory.
class MemorySplit {
 public:
  MemorySplit() {
    char name[] = "/tmp/fuzz-idx-XXXXXX";
    FUZZ_CHECK(::mkdtemp(name) != nullptr);
    path_ = name;
    FUZZ_CHECK(::symlink(images_.path().c_str(), (path_ + "/train-images-idx3-ubyte").c_str()) == 0);
    FUZZ_CHECK(::symlink(labels_.path().c_str(), (path_ + "/train-labels-idx1-ubyte").c_str()) == 0);
  }
  ~MemorySplit() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  MemorySplit& operator=(MemorySplit&&) = delete;  // not copied, not moved

  const std::string& path() const { return path_; }
  void fill(const uint8_t* bytes, size_t size) {
    const size_t asked = size < 2 ? 0 : bytes[0] | static_cast<size_t>(bytes[1]) << 8;
    const size_t start = size < 2 ? size : 2, images = asked < size - start ? asked : size - start;
    images_.fill(bytes + start, images);
    labels_.fill(bytes + start + images, size - start - images);
  }

 private:
  stoker::fuzz::MemoryFile images_, labels_;
  std::string path_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static MemorySplit split;
  split.fill(bytes, size);
  try {
    const auto source = stoker::data::open_idx_split(split.path(), "train", {"a", "b", "c"});
    uint64_t sum = 0;  // every pixel is read
    std::vector<uint8_t> buffer;
    for (int64_t i = 0; i < source->size(); ++i) {
      FUZZ_CHECK(source->label(i) >= 0 && source->label(i) < 3);
      stoker::data::SampleContent content;
      FUZZ_CHECK(source->read(i, buffer, content).empty());
      FUZZ_CHECK(content.size == static_cast<uint64_t>(content.height) * static_cast<uint64_t>(content.width));
      for (uint64_t at = 0; at < content.size; ++at) sum += content.bytes[at];
    }
    FUZZ_CHECK(sum != ~uint64_t{0});
  } catch (const stoker::core::Error& error) {
    FUZZ_CHECK(error.kind() == stoker::core::ErrorKind::data);
  }
  return 0;
}
