// SPDX-License-Identifier: Apache-2.0
#include "data/container/sample_array.h"

#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

#include "core/error.h"
#include "core/format.h"

namespace stoker::data {

namespace {

/// Shuffled: first byte 0 of all numbers, then byte 1 of all, and so on.
template <size_t kBytes>
void unshuffle(const uint8_t* shuffled, size_t numbers, uint8_t* out) {
  for (size_t i = 0; i < numbers; ++i) {
    for (size_t b = 0; b < kBytes; ++b) out[i * kBytes + b] = shuffled[b * numbers + i];
  }
}

/// Bytes after the last whole number are not shuffled.
void unshuffle(const std::vector<uint8_t>& shuffled, int element_bytes, std::vector<uint8_t>& out) {
  out = shuffled;
  const size_t numbers = shuffled.size() / static_cast<size_t>(element_bytes);
  if (element_bytes == 4) {
    unshuffle<4>(shuffled.data(), numbers, out.data());
  } else {
    unshuffle<2>(shuffled.data(), numbers, out.data());
  }
}

std::string inflate_whole(const std::vector<uint8_t>& stored, std::vector<uint8_t>& content) {
  auto written = static_cast<uLongf>(content.size());
  const int result = ::uncompress(content.data(), &written, stored.data(), static_cast<uLong>(stored.size()));
  if (result == Z_MEM_ERROR) throw std::bad_alloc();
  if (result == Z_OK && written == content.size()) return "";
  if (result == Z_OK) {
    return core::format("the chunk inflates to {} bytes instead of {}", written, content.size());
  }
  return result == Z_BUF_ERROR ? "the deflate stream of the chunk is cut short or too long"
                               : "the deflate stream of the chunk is damaged";
}

}  // namespace

std::string decode_chunk(const std::vector<ChunkFilter>& filters, uint32_t skipped, int element_bytes,
                         std::vector<uint8_t>& stored, std::vector<uint8_t>& content) {
  const size_t wanted = content.size();
  for (size_t i = filters.size(); i-- > 0;) {
    if ((skipped >> i & 1) != 0) continue;
    if (filters[i] == ChunkFilter::deflate) {
      content.resize(wanted);
      if (std::string cause = inflate_whole(stored, content); !cause.empty()) return cause;
    } else {
      if (element_bytes == 1) continue;  // shuffling single bytes changes nothing
      unshuffle(stored, element_bytes, content);
    }
    stored.swap(content);
  }
  stored.swap(content);
  if (content.size() == wanted) return "";
  return core::format("the chunk has {} bytes instead of {}", content.size(), wanted);
}

std::string ChunkCache::get(uint64_t id, int64_t bytes, const Make& make, Content& content) {
  Partition& partition = partitions_[id % used_partitions_];
  const std::shared_ptr<Slot> slot = slot_of(partition, id, bytes);
  bool is_new = false;
  {
    const std::lock_guard<std::mutex> lock(slot->mutex);
    if (!slot->is_full) {
      if (std::string cause = make(slot->content); !cause.empty()) return cause;
      slot->is_full = is_new = true;
    }
  }
  if (is_new) count(partition, id, *slot);
  content = Content(slot, &slot->content);
  return "";
}

/// The slot of a chunk. Before a new one is made, those that were not used for longest are let go.
std::shared_ptr<ChunkCache::Slot> ChunkCache::slot_of(Partition& partition, uint64_t id, int64_t bytes) {
  const std::lock_guard<std::mutex> lock(partition.mutex);
  const auto found = partition.places.find(id);
  if (found != partition.places.end()) {
    partition.by_use.splice(partition.by_use.begin(), partition.by_use, found->second);
    return found->second->slot;
  }
  while (partition.bytes + bytes > partition_budget_ && !partition.by_use.empty()) {
    const Kept& oldest = partition.by_use.back();
    partition.bytes -= oldest.bytes;
    partition.places.erase(oldest.id);
    partition.by_use.pop_back();
  }
  partition.by_use.push_front({id, std::make_shared<Slot>()});
  partition.places.emplace(id, partition.by_use.begin());
  return partition.by_use.front().slot;
}

/// Adds a chunk that has just been decoded.
void ChunkCache::count(Partition& partition, uint64_t id, const Slot& slot) {
  const std::lock_guard<std::mutex> lock(partition.mutex);
  const auto found = partition.places.find(id);
  if (found == partition.places.end() || found->second->slot.get() != &slot) return;  // let go of in the meantime
  found->second->bytes = static_cast<int64_t>(slot.content.size());
  partition.bytes += found->second->bytes;
}

namespace {

constexpr int64_t kCacheBytes = 256 << 20;
constexpr int64_t kMaxBytes = 1 << 30;  ///< size limit of a sample, and of a chunk
constexpr char kRepackHint[] = "write the data set again, or get the file again";

/// The product of all numbers from `first` on; kMaxBytes + 1 when it is larger than that.
int64_t bounded_product(const std::vector<int64_t>& numbers, size_t first) {
  int64_t product = 1;
  for (size_t i = first; i < numbers.size(); ++i) {
    if (numbers[i] > kMaxBytes / product) return kMaxBytes + 1;
    product *= numbers[i];
  }
  return product;
}

/// Chunks above this many bytes are decoded and used one at a time, and all arrays of the process keep kMaxBytes of
/// them together: a file of many takes that, and two more while one is decoded, whatever the number of threads and
/// files.
constexpr int64_t kLargeChunkBytes = 256 << 20;

struct LargeChunks {
  std::mutex alone;  ///< held while one is decoded and used
  std::shared_ptr<ChunkCache> cache = std::make_shared<ChunkCache>(kMaxBytes, 1);
  std::atomic<uint64_t> arrays{0};
};

LargeChunks& large_chunks() {
  static LargeChunks chunks;
  return chunks;
}

std::string bytes_of_count(int64_t bytes) { return core::bytes_text(static_cast<double>(bytes)); }

}  // namespace

SampleArray::Box SampleArray::box_of(const std::vector<int64_t>& sides) {
  const auto side = [&](size_t from_last) {
    return sides.size() > from_last + 1 ? sides[sides.size() - 1 - from_last] : 1;
  };
  return {side(2), side(1), side(0)};
}

SampleArray::SampleArray(std::shared_ptr<const FileBytes> file, NumberArray array, int64_t arrays)
    : file_(std::move(file)), array_(std::move(array)), element_(bytes_of(array_.element)) {
  const size_t rank = array_.dims.size();
  const auto is_positive = [](int64_t side) { return side > 0; };
  if (rank < 2 || rank > 4) {
    std::string sides;
    for (const int64_t side : array_.dims) sides += (sides.empty() ? "" : ", ") + std::to_string(side);
    throw core::Error(core::ErrorKind::data,
                      core::format("{}: data set {} has {} [{}]; samples have 2 or 3 behind their number",
                                   core::printable(file_->name()), core::printable(array_.name),
                                   core::counted(static_cast<int64_t>(rank), "dimension"), sides),
                      "write it as [N, H, W], [N, C, H, W] or [N, H, W, C]: array.reshape(...) in Python");
  }
  if (!std::all_of(array_.dims.begin(), array_.dims.end(), is_positive) ||
      !std::all_of(array_.chunk.begin(), array_.chunk.end(), is_positive) ||
      (!array_.chunk.empty() && array_.chunk.size() != rank)) {
    fail("its dimensions cannot be read");
  }
  sample_ = part_ = box_of(array_.dims);
  const int64_t numbers = bounded_product(array_.dims, 1);
  if (numbers > kMaxBytes / element_) fail("a sample has more than " + bytes_of_count(kMaxBytes));
  sample_bytes_ = part_bytes_ = numbers * element_;
  if (array_.chunk.empty()) {
    check_one_piece();
    return;
  }
  part_ = box_of(array_.chunk);
  const int64_t chunk_numbers = bounded_product(array_.chunk, 0);
  if (chunk_numbers > kMaxBytes / element_) {
    fail("a chunk has more than " + bytes_of_count(kMaxBytes),
         core::format("give it smaller chunks: h5repack -l {}:CHUNK=...", array_.name));
  }
  chunk_bytes_ = chunk_numbers * element_;
  part_bytes_ = bounded_product(array_.chunk, 1) * element_;
  const auto chunks_along = [&](size_t from_last) {
    return rank > from_last + 1 ? array_.grid(rank - 1 - from_last) : 1;
  };
  grid_ = {chunks_along(2), chunks_along(1), chunks_along(0)};
  check_chunks();
  is_large_ = is_filtered() && chunk_bytes_ > kLargeChunkBytes;
  if (is_large_ && array_.chunk[0] > 1) {
    cache_ = large_chunks().cache;
    first_id_ = large_chunks().arrays++ << 40;
  } else if (is_filtered() && array_.chunk[0] > 1) {
    // At least what a few neighbouring runs of samples need.
    const int64_t least = std::min(kMaxBytes / arrays, 4 * grid_.numbers() * chunk_bytes_);
    const int64_t budget = std::max(kCacheBytes / arrays, least);
    cache_ =
        std::make_shared<ChunkCache>(budget, std::clamp<int64_t>(budget / chunk_bytes_, 4, ChunkCache::kPartitions));
  }
}

void SampleArray::fail(const std::string& cause, const std::string& hint) const {
  throw core::Error(
      core::ErrorKind::data,
      core::format("{}: data set {}: {}", core::printable(file_->name()), core::printable(array_.name), cause),
      hint.empty() ? kRepackHint : hint);
}

void SampleArray::check_one_piece() const {
  const uint64_t available = file_->size() < array_.offset ? 0 : file_->size() - array_.offset;
  if (static_cast<uint64_t>(samples()) <= available / static_cast<uint64_t>(sample_bytes_)) return;
  fail(core::format("{} samples of {} bytes from byte {} on do not lie inside the file of {} bytes", samples(),
                    sample_bytes_, array_.offset, file_->size()));
}

void SampleArray::check_chunks() const {
  const int64_t rows_of_chunks = array_.grid(0), in_row = grid_.numbers();
  if (rows_of_chunks > static_cast<int64_t>(array_.places.size()) / in_row ||
      rows_of_chunks * in_row != static_cast<int64_t>(array_.places.size())) {
    fail("the list of its chunks is not whole");
  }
  for (size_t i = 0; i < array_.places.size(); ++i) {
    const ChunkPlace& place = array_.places[i];
    const int64_t first = static_cast<int64_t>(i) / in_row * array_.chunk[0];
    if (place.bytes == 0) {
      fail(core::format("samples {} to {} were never written", first, std::min(first + array_.chunk[0], samples()) - 1),
           "write them, or make the data set shorter");
    }
    if (place.offset > file_->size() || place.bytes > file_->size() - place.offset) {
      fail(core::format("the chunk of sample {}, {} bytes from byte {} on, does not lie inside the file of {} bytes",
                        first, place.bytes, place.offset, file_->size()));
    }
    const bool is_possible = is_filtered() ? chunk_bytes_ / kMaxInflation <= int64_t{place.bytes} &&
                                                 int64_t{place.bytes} <= 2 * chunk_bytes_ + 1024
                                           : int64_t{place.bytes} == chunk_bytes_;
    if (!is_possible) {
      fail(core::format("the chunk of sample {} has {} bytes, which cannot be a chunk of {}", first, place.bytes,
                        chunk_bytes_));
    }
  }
}

std::string SampleArray::decode(const ChunkPlace& place, std::vector<uint8_t>& stored,
                                std::vector<uint8_t>& content) const {
  stored.resize(place.bytes);
  if (std::string cause = file_->try_read(place.offset, stored.data(), stored.size()); !cause.empty()) return cause;
  content.resize(static_cast<size_t>(chunk_bytes_));
  return decode_chunk(array_.filters, place.skipped_filters, static_cast<int>(element_), stored, content);
}

/// The part of sample number `within` in a chunk. `part` lies in `scratch` or in `keep`.
std::string SampleArray::read_chunk_part(const ChunkPlace& place, uint64_t id, int64_t within, ArrayScratch& scratch,
                                         const uint8_t*& part, ChunkCache::Content& keep) const {
  const auto at = static_cast<uint64_t>(within * part_bytes_);
  if (!is_filtered()) {
    scratch.content.resize(static_cast<size_t>(part_bytes_));
    part = scratch.content.data();
    return file_->try_read(place.offset + at, scratch.content.data(), scratch.content.size());
  }
  if (cache_ == nullptr) {
    std::string cause = decode(place, scratch.stored, scratch.content);
    part = scratch.content.data() + at;
    return cause;
  }
  std::string cause = cache_->get(
      first_id_ + id, chunk_bytes_,
      [&](std::vector<uint8_t>& content) { return decode(place, scratch.stored, content); }, keep);
  if (cause.empty()) part = keep->data() + at;
  return cause;
}

/// Copies the part of a chunk at grid position `at` to where it lies in the sample; what reaches beyond is
/// left out.
void SampleArray::scatter(const uint8_t* part, const Box& at, uint8_t* out) const {
  const int64_t first_plane = at.planes * part_.planes, first_row = at.rows * part_.rows,
                first_column = at.columns * part_.columns;
  const int64_t planes = std::min(part_.planes, sample_.planes - first_plane),
                rows = std::min(part_.rows, sample_.rows - first_row),
                columns = std::min(part_.columns, sample_.columns - first_column);
  for (int64_t p = 0; p < planes; ++p) {
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t to = ((first_plane + p) * sample_.rows + first_row + r) * sample_.columns + first_column;
      std::memcpy(out + to * element_, part + (p * part_.rows + r) * part_.columns * element_,
                  static_cast<size_t>(columns * element_));
    }
  }
}

std::string SampleArray::read(int64_t index, ArrayScratch& scratch, uint8_t* out) const {
  if (array_.chunk.empty()) {
    return file_->try_read(array_.offset + static_cast<uint64_t>(index * sample_bytes_), out,
                           static_cast<uint64_t>(sample_bytes_));
  }
  const int64_t within = index % array_.chunk[0];
  if (!is_filtered() && part_bytes_ == sample_bytes_) {  // a chunk has whole samples, one after another
    const ChunkPlace& place = array_.places[static_cast<size_t>(index / array_.chunk[0])];
    return file_->try_read(place.offset + static_cast<uint64_t>(within * part_bytes_), out,
                           static_cast<uint64_t>(sample_bytes_));
  }
  if (!is_large_) return read_parts(index, scratch, out);
  const std::lock_guard<std::mutex> alone(large_chunks().alone);
  std::string cause = read_parts(index, scratch, out);
  scratch = {};
  return cause;
}

std::string SampleArray::read_parts(int64_t index, ArrayScratch& scratch, uint8_t* out) const {
  const int64_t within = index % array_.chunk[0];
  auto id = static_cast<uint64_t>(index / array_.chunk[0] * grid_.numbers());
  Box at;
  for (at.planes = 0; at.planes < grid_.planes; ++at.planes) {
    for (at.rows = 0; at.rows < grid_.rows; ++at.rows) {
      for (at.columns = 0; at.columns < grid_.columns; ++at.columns, ++id) {
        const uint8_t* part = nullptr;
        ChunkCache::Content keep;
        std::string cause = read_chunk_part(array_.places[id], id, within, scratch, part, keep);
        if (!cause.empty()) return cause;
        scatter(part, at, out);
      }
    }
  }
  return "";
}

std::vector<int64_t> SampleArray::run_ends() const {
  constexpr int64_t kRunBytes = 1 << 20;
  const int64_t together = array_.chunk.empty() ? 1 : array_.chunk[0];
  const int64_t chunks = std::max<int64_t>(1, kRunBytes / sample_bytes_ / together);
  std::vector<int64_t> ends;
  for (int64_t end = chunks * together; end < samples(); end += chunks * together) ends.push_back(end);
  ends.push_back(samples());
  return ends;
}

}  // namespace stoker::data
