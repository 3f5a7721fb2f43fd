// SPDX-License-Identifier: Apache-2.0
// Bytes as the manifest.json of a checkpoint: read, or refused as data; never a path that leaves the folder.
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "core/error.h"
#include "engine/files/checkpoint_files.h"
#include "fuzz_target.h"

namespace {

/// A checkpoint folder whose manifest lives in memory.
class MemoryCheckpoint {
 public:
  MemoryCheckpoint() {
    char name[] = "/tmp/fuzz-manifest-XXXXXX";
    FUZZ_CHECK(::mkdtemp(name) != nullptr);
    path_ = name;
    FUZZ_CHECK(::symlink(manifest_.path().c_str(), (path_ + "/manifest.json").c_str()) == 0);
  }
  ~MemoryCheckpoint() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  MemoryCheckpoint& operator=(MemoryCheckpoint&&) = delete;  // not copied, not moved

  const std::string& path() const { return path_; }
  void fill(const uint8_t* bytes, size_t size) { manifest_.fill(bytes, size); }

 private:
  stoker::fuzz::MemoryFile manifest_;
  std::string path_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static MemoryCheckpoint checkpoint;
  checkpoint.fill(bytes, size);
  try {
    const stoker::engine::Manifest manifest = stoker::engine::read_manifest(checkpoint.path());
    FUZZ_CHECK(manifest.updates >= 0);
    for (const auto& [name, record] : manifest.files) {
      FUZZ_CHECK(!name.empty() && name[0] != '.' && name.find('/') == std::string::npos);
      FUZZ_CHECK(name.find('\0') == std::string::npos);
      FUZZ_CHECK(record.bytes >= 0);
    }
    stoker::engine::verify_checkpoint(checkpoint.path());
  } catch (const stoker::core::Error& error) {
    FUZZ_CHECK(error.kind() == stoker::core::ErrorKind::data);
  }
  return 0;
}
