// SPDX-License-Identifier: Apache-2.0
#include "data/container/hdf5_chunks.h"

#include <exception>
#include <limits>

#include "core/error.h"
#include "core/format.h"
#include "data/container/hdf5_chunk_tree.h"
#include "data/container/hdf5_type.h"

// Releases before this one lack the function, or give it other arguments.
#if H5_VERSION_GE(1, 14, 3)
#define STOKER_HAS_CHUNK_ITER
#endif

namespace stoker::data {
namespace {

constexpr char kDamagedHint[] = "get the file again, or write it again";

[[noreturn]] void fail(const ChunkedDataSet& searched, const std::string& cause, const std::string& hint) {
  throw core::Error(core::ErrorKind::data, searched.name + ": " + cause, hint);
}

#ifdef STOKER_HAS_CHUNK_ITER

/// What the library's callback works on. Nothing is thrown through the library.
struct Iteration {
  const ChunkedDataSet& searched;
  const ChunkFound& found;
  uint64_t chunks = 0;
  std::exception_ptr thrown;
};

int take_chunk(const hsize_t* begin, unsigned skipped_filters, haddr_t address, hsize_t bytes, void* state) {
  auto& iteration = *static_cast<Iteration*>(state);
  try {
    if (++iteration.chunks > iteration.searched.most_chunks || bytes > std::numeric_limits<uint32_t>::max()) return -1;
    iteration.found({begin, begin + iteration.searched.rank}, {address, static_cast<uint32_t>(bytes), skipped_filters});
    return 0;
  } catch (...) {
    iteration.thrown = std::current_exception();
    return -1;
  }
}

#endif

}  // namespace

bool list_chunks_by_library(const ChunkedDataSet& searched, const ChunkFound& found) {
#ifdef STOKER_HAS_CHUNK_ITER
  Iteration iteration{searched, found, 0, nullptr};
  const herr_t result = H5Dchunk_iter(searched.data_set, H5P_DEFAULT, take_chunk, &iteration);
  if (iteration.thrown != nullptr) std::rethrow_exception(iteration.thrown);
  if (result < 0) fail(searched, "its chunks cannot be listed: " + hdf5_library_words(), kDamagedHint);
  return true;
#else
  static_cast<void>(searched);
  static_cast<void>(found);
  return false;
#endif
}

bool list_chunks_by_tree(const ChunkedDataSet& searched, const ChunkFound& found) {
  size_t address_bytes = 0, length_bytes = 0;
  const Hdf5Handle creation(H5Fget_create_plist(searched.file), H5Pclose);
  H5Pget_sizes(creation.id(), &address_bytes, &length_bytes);
  uint64_t header = 0;
  if (address_bytes != 8 || length_bytes != 8 || !hdf5_object_address(searched.data_set, header)) return false;
  return visit_chunk_tree(searched.bytes, header, searched.rank, searched.most_chunks, found);
}

void list_chunks_one_by_one(const ChunkedDataSet& searched, const ChunkFound& found) {
  constexpr hsize_t kMax = 20'000;  // seconds
  const Hdf5Handle space(H5Dget_space(searched.data_set), H5Sclose);
  hsize_t written = 0;
  H5Dget_num_chunks(searched.data_set, space.id(), &written);
  if (written > kMax) {
    fail(searched, core::format("it has {} chunks in an index of the latest kind; {} are read", written, kMax),
         "write it again with larger chunks, or without libver='latest': h5repack FILE NEWFILE");
  }
  for (hsize_t i = 0; i < written; ++i) {
    hsize_t begin[kMaxRank] = {}, stored = 0;
    unsigned skipped = 0;
    haddr_t address = 0;
    if (H5Dget_chunk_info(searched.data_set, space.id(), i, begin, &skipped, &address, &stored) < 0 ||
        stored > std::numeric_limits<uint32_t>::max()) {
      fail(searched, "its chunks cannot be listed: " + hdf5_library_words(), kDamagedHint);
    }
    found({begin, begin + searched.rank}, {address, static_cast<uint32_t>(stored), skipped});
  }
}

void list_chunks(const ChunkedDataSet& searched, const ChunkFound& found) {
  if (list_chunks_by_library(searched, found) || list_chunks_by_tree(searched, found)) return;
  list_chunks_one_by_one(searched, found);
}

}  // namespace stoker::data
