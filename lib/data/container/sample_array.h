// SPDX-License-Identifier: Apache-2.0
// Samples of a number array by their index: reads of our own, from any thread at once, into the caller's
// memory.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "data/source.h"
#include "data/storage/byte_reader.h"

namespace stoker::data {

// Where the numbers of one data set lie in a file: in one piece, or in chunks that may be filtered. Facts
// alone, free of the library that finds them.

/// The filter that was applied to a chunk.
enum class ChunkFilter : uint8_t { deflate, shuffle };

/// One chunk in the file.
struct ChunkPlace {
  uint64_t offset = 0;           ///< from the beginning of the file
  uint32_t bytes = 0;            ///< as stored; 0: the chunk was never written
  uint32_t skipped_filters = 0;  ///< bit i: filter i was not applied to this chunk
};

/// Little-endian numbers in row-major order. Samples are counted by the first dimension.
struct NumberArray {
  std::string name;           ///< in the file, such as "train/x"
  std::vector<int64_t> dims;  ///< each at least 1
  Element element = Element::uint8;
  uint64_t offset = 0;               ///< position of the first number, where there are no chunks
  std::vector<int64_t> chunk;        ///< sides of a chunk, as many as dims; empty: all in one piece
  std::vector<ChunkFilter> filters;  ///< in the order in which they were applied
  std::vector<ChunkPlace> places;    ///< places of all chunks, row-major over the grid of chunks

  /// Chunks along dimension `i`; the last may reach beyond the data.
  int64_t grid(size_t i) const { return (dims[i] - 1) / chunk[i] + 1; }
};

// Undoes the filters of a chunk: deflate and byte shuffling.

/// How many times its size deflate can make of a stored byte (zlib's documentation: 1032 to 1), rounded up.
constexpr int64_t kMaxInflation = 1040;

/// Undoes `filters`, of which those of `skipped` (bit i: filter i) were not applied, last first. `stored` are
/// the bytes of the file; it is used as scratch. `content` must have the size of the chunk and receives it.
/// At most one deflate. Returns "" or why the chunk is damaged.
std::string decode_chunk(const std::vector<ChunkFilter>& filters, uint32_t skipped, int element_bytes,
                         std::vector<uint8_t>& stored, std::vector<uint8_t>& content);

// Decoded chunks that several samples share, kept in bounded memory.

/// Safe from any thread. Threads that want the same chunk wait for the one that decodes it; others do not.
class ChunkCache {
 public:
  static constexpr int64_t kPartitions = 16;

  /// Bytes of content; what is in use beyond that goes when its users do. Each partition (1 to 16 of them, chosen by
  /// the chunk's id) has its share of the budget, and keeps one chunk even where that is larger.
  explicit ChunkCache(int64_t budget_bytes, int64_t partitions = kPartitions)
      : used_partitions_(static_cast<uint64_t>(partitions)), partition_budget_(budget_bytes / partitions) {}

  using Content = std::shared_ptr<const std::vector<uint8_t>>;
  /// Fills a content; returns "" or why it cannot.
  using Make = std::function<std::string(std::vector<uint8_t>&)>;
  /// The content of chunk `id`, `bytes` of it, in `content`, as kept or as `make` gives it. Returns "" or what `make`
  /// returned; what it throws passes through. Failures are not kept. Other chunks are let go before `make` is called.
  std::string get(uint64_t id, int64_t bytes, const Make& make, Content& content);

 private:
  struct Slot {
    std::mutex mutex;
    std::vector<uint8_t> content;
    bool is_full = false;
  };
  struct Kept {
    uint64_t id = 0;
    std::shared_ptr<Slot> slot;
    int64_t bytes = 0;
  };
  /// Holds the chunks of some ids under a lock of its own, so that threads seldom wait for each other.
  struct Partition {
    std::mutex mutex;
    std::list<Kept> by_use;  ///< the last used first
    std::unordered_map<uint64_t, std::list<Kept>::iterator> places;
    int64_t bytes = 0;
  };

  std::shared_ptr<Slot> slot_of(Partition& partition, uint64_t id, int64_t bytes);
  void count(Partition& partition, uint64_t id, const Slot& slot);

  const uint64_t used_partitions_;
  const int64_t partition_budget_;  ///< bytes
  std::array<Partition, kPartitions> partitions_;
};

/// Scratch of one caller; capacity only grows.
struct ArrayScratch {
  std::vector<uint8_t> stored, content;
};

/// Immutable but for its cache of decoded chunks; safe from any thread.
class SampleArray {
 public:
  /// Checks every place against the file's size. Throws core::Error{data}: an array that does not lie inside
  /// the file, a chunk that was never written, or one that is too large or cannot be what its entry claims.
  /// `arrays`: how many arrays in as many files are read together and share the memory for decoded chunks.
  SampleArray(std::shared_ptr<const FileBytes> file, NumberArray array, int64_t arrays = 1);

  const NumberArray& array() const { return array_; }
  int64_t samples() const { return array_.dims[0]; }
  int64_t sample_bytes() const { return sample_bytes_; }
  /// Copies sample `index`, row-major, sample_bytes() of them, to `out`. Returns "" or why it cannot be read.
  /// Throws core::Error{io} when the storage fails.
  std::string read(int64_t index, ArrayScratch& scratch, uint8_t* out) const;
  /// Where runs of samples end that lie together: those that share chunks, else about a megabyte.
  std::vector<int64_t> run_ends() const;
  /// Samples that are decoded together; 1 where each can be read alone.
  int64_t decoded_together() const { return is_filtered() ? array_.chunk[0] : 1; }

 private:
  /// Dimensions 1 to 3 of everything, those that are missing being 1.
  struct Box {
    int64_t planes = 1, rows = 1, columns = 1;
    int64_t numbers() const { return planes * rows * columns; }
  };

  bool is_filtered() const { return !array_.filters.empty(); }
  static Box box_of(const std::vector<int64_t>& sides);
  void check_one_piece() const;
  void check_chunks() const;
  [[noreturn]] void fail(const std::string& cause, const std::string& hint = "") const;
  std::string read_parts(int64_t index, ArrayScratch& scratch, uint8_t* out) const;
  std::string read_chunk_part(const ChunkPlace& place, uint64_t id, int64_t within, ArrayScratch& scratch,
                              const uint8_t*& part, ChunkCache::Content& keep) const;
  std::string decode(const ChunkPlace& place, std::vector<uint8_t>& stored, std::vector<uint8_t>& content) const;
  void scatter(const uint8_t* part, const Box& at, uint8_t* out) const;

  const std::shared_ptr<const FileBytes> file_;
  const NumberArray array_;
  Box sample_, part_;    ///< a sample, and what a chunk has of it, in numbers
  Box grid_;             ///< chunks of a sample along each dimension
  int64_t element_ = 1;  ///< bytes
  int64_t sample_bytes_ = 0, part_bytes_ = 0, chunk_bytes_ = 0;
  bool is_large_ = false;              ///< its chunks are decoded and used one at a time in this process
  std::shared_ptr<ChunkCache> cache_;  ///< cache of filtered chunks with several samples; large ones share one
  uint64_t first_id_ = 0;              ///< id of this array's first chunk in the cache
};

}  // namespace stoker::data
