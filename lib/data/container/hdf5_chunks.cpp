// SPDX-License-Identifier: Apache-2.0
#include "data/container/hdf5_chunks.h"

#include <algorithm>
#include <exception>
#include <limits>

#include "core/error.h"
#include "core/format.h"

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

/// The state of the library's callback. Nothing is thrown through the library.
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

namespace {

/// IEEE 754 binary16: 1 sign bit, 5 of exponent with bias 15, 10 of mantissa.
bool is_half(hid_t type) {
  const Hdf5Handle half(H5Tcopy(H5T_IEEE_F32LE), H5Tclose);
  H5Tset_fields(half.id(), 15, 10, 5, 0, 10);
  H5Tset_size(half.id(), 2);
  H5Tset_ebias(half.id(), 15);
  return H5Tequal(type, half.id()) > 0;
}

}  // namespace

bool hdf5_element(hid_t type, Element& element) {
  if (H5Tequal(type, H5T_STD_U8LE) > 0 || H5Tequal(type, H5T_STD_U8BE) > 0) {
    element = Element::uint8;
  } else if (H5Tequal(type, H5T_IEEE_F32LE) > 0) {
    element = Element::float32;
  } else if (is_half(type)) {
    element = Element::float16;
  } else {
    return false;
  }
  return true;
}

std::string hdf5_type_text(hid_t type) {
  const size_t bits = 8 * H5Tget_size(type);
  const char* const order = bits > 8 && H5Tget_order(type) == H5T_ORDER_BE ? "big-endian " : "";
  switch (H5Tget_class(type)) {
    case H5T_INTEGER: return core::format("{}{}int{}", order, H5Tget_sign(type) == H5T_SGN_NONE ? "u" : "", bits);
    case H5T_FLOAT:
      return core::format("{}{}{}", order,
                          bits != 16 || is_half(type) || *order != 0 ? "float" : "another kind of float", bits);
    case H5T_ENUM: return "enum (bool)";
    case H5T_STRING: return "string";
    case H5T_COMPOUND: return "compound";
    case H5T_VLEN: return "variable-length";
    case H5T_ARRAY: return "array";
    default: return "another type";
  }
}

std::vector<int64_t> hdf5_dims(hid_t data_set) {
  const Hdf5Handle space(H5Dget_space(data_set), H5Sclose);
  const int rank = H5Sget_simple_extent_ndims(space.id());
  if (rank < 1 || rank > kMaxRank || H5Sget_simple_extent_type(space.id()) != H5S_SIMPLE) return {};
  hsize_t sides[kMaxRank] = {};
  H5Sget_simple_extent_dims(space.id(), sides, nullptr);
  std::vector<int64_t> dims;
  for (int i = 0; i < rank; ++i) {
    dims.push_back(static_cast<int64_t>(std::min<hsize_t>(sides[i], std::numeric_limits<int64_t>::max())));
  }
  return dims;
}

std::string sides_text(const std::vector<int64_t>& sides) {
  std::string text = "[";
  for (size_t i = 0; i < sides.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(sides[i]);
  return text + "]";
}

std::string hdf5_library_words() {
  std::string words;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned depth, const H5E_error2_t* error, void* out) -> herr_t {
        if (depth == 0 && error->desc != nullptr) *static_cast<std::string*>(out) = error->desc;
        return 0;
      },
      &words);
  return core::printable(words);
}

bool hdf5_object_address(hid_t data_set, uint64_t& address) {
#if H5_VERSION_GE(1, 12, 0)
  H5O_info1_t info;
  const herr_t result = H5Oget_info1(data_set, &info);
#else
  H5O_info_t info;
  const herr_t result = H5Oget_info(data_set, &info);
#endif
  if (result < 0 || info.addr == HADDR_UNDEF) return false;
  address = info.addr;
  return true;
}

namespace {

constexpr uint64_t kObjectHeadBytes = 16, kMessageHead = 8, kNodeHead = 24, kAddressBytes = 8;
constexpr uint16_t kLayoutMessage = 0x0008, kContinuation = 0x0010;
constexpr uint8_t kChunkedLayout = 2, kChunkNode = 1;
constexpr uint64_t kMaxBlocks = 64, kMaxBlockBytes = 1 << 20;  ///< limits on an object header

class ChunkTree {
 public:
  using Found = std::function<void(const std::vector<uint64_t>&, const ChunkPlace&)>;

  ChunkTree(const ByteReader& file, size_t rank, uint64_t most_chunks, const Found& found)
      : file_(file), rank_(rank), most_nodes_(2 * most_chunks + 64), most_chunks_(most_chunks), found_(found) {}

  bool visit(uint64_t object_header) {
    uint64_t root = 0;
    if (!find_root(object_header, root)) return false;
    if (root == ~uint64_t{0}) return true;  // nothing was ever written
    const Bytes head = read(root, kNodeHead);
    visit_node(root, head[5]);
    return true;
  }

 private:
  using Bytes = std::vector<uint8_t>;

  static uint64_t number(const Bytes& bytes, size_t at, size_t width) {
    uint64_t value = 0;
    for (size_t i = width; i-- > 0;) value = value << 8 | bytes[at + i];
    return value;
  }

  [[noreturn]] void fail(uint64_t at, const std::string& cause) const {
    throw core::Error(core::ErrorKind::data, core::format("{}: byte {}: {}", core::printable(file_.name()), at, cause),
                      "get the file again, or write it again");
  }

  Bytes read(uint64_t at, uint64_t count) const {
    if (at > file_.size() || count > file_.size() - at) {
      fail(at, core::format("a structure of {} bytes does not lie inside the file", count));
    }
    Bytes bytes(count);
    file_.read(at, bytes.data(), count);
    return bytes;
  }

  /// The address of the B-tree from the layout message, which may lie in any block of the object header.
  /// False where the header or the message is of another kind.
  bool find_root(uint64_t object_header, uint64_t& root) const {
    const Bytes head = read(object_header, kObjectHeadBytes);
    if (head[0] != 1) return false;
    std::vector<std::pair<uint64_t, uint64_t>> blocks = {{object_header + kObjectHeadBytes, number(head, 8, 4)}};
    for (size_t i = 0; i < blocks.size() && blocks.size() <= kMaxBlocks; ++i) {
      if (blocks[i].second > kMaxBlockBytes) fail(blocks[i].first, "an object header that is too large");
      const Bytes block = read(blocks[i].first, blocks[i].second);
      for (size_t at = 0; at + kMessageHead <= block.size();) {
        const auto type = static_cast<uint16_t>(number(block, at, 2));
        const size_t bytes = number(block, at + 2, 2), content = at + kMessageHead;
        if (bytes > block.size() - content) fail(blocks[i].first, "a message reaches beyond its object header");
        if (type == kContinuation && bytes >= 16) {
          blocks.emplace_back(number(block, content, 8), number(block, content + 8, 8));
        }
        if (type == kLayoutMessage) return read_layout(block, content, bytes, root);
        at = content + bytes;
      }
    }
    return false;
  }

  bool read_layout(const Bytes& block, size_t at, size_t bytes, uint64_t& root) const {
    constexpr uint8_t kVersion = 3;
    if (bytes < 3 + kAddressBytes || block[at] != kVersion || block[at + 1] != kChunkedLayout) return false;
    if (block[at + 2] != rank_ + 1) return false;
    root = number(block, at + 3, kAddressBytes);
    return true;
  }

  /// `level` is what its parent promises, so that levels fall and the walk ends.
  void visit_node(uint64_t at, uint8_t level) {
    if (++nodes_ > most_nodes_) fail(at, "the tree of chunks has more nodes than it can need");
    const Bytes head = read(at, kNodeHead);
    if (std::string(head.begin(), head.begin() + 4) != "TREE" || head[4] != kChunkNode || head[5] != level) {
      fail(at, "this is not a node of a tree of chunks");
    }
    const uint64_t entries = number(head, 6, 2);
    const uint64_t key_bytes = 8 + 8 * (rank_ + 1), entry_bytes = key_bytes + kAddressBytes;
    const Bytes body = read(at + kNodeHead, entries * entry_bytes);
    for (uint64_t i = 0; i < entries; ++i) {
      const size_t key = i * entry_bytes;
      const uint64_t address = number(body, key + key_bytes, kAddressBytes);
      if (level > 0) {
        visit_node(address, static_cast<uint8_t>(level - 1));
        continue;
      }
      if (++chunks_ > most_chunks_) fail(at, "the tree has more chunks than the data set");
      std::vector<uint64_t> begin(rank_);
      for (size_t d = 0; d < rank_; ++d) begin[d] = number(body, key + 8 + 8 * d, 8);
      found_(begin,
             {address, static_cast<uint32_t>(number(body, key, 4)), static_cast<uint32_t>(number(body, key + 4, 4))});
    }
  }

  const ByteReader& file_;
  const size_t rank_;
  const uint64_t most_nodes_, most_chunks_;
  const Found& found_;
  uint64_t nodes_ = 0, chunks_ = 0;
};

}  // namespace

bool visit_chunk_tree(const ByteReader& file, uint64_t object_header, size_t rank, uint64_t most_chunks,
                      const std::function<void(const std::vector<uint64_t>& begin, const ChunkPlace& place)>& found) {
  return ChunkTree(file, rank, most_chunks, found).visit(object_header);
}

}  // namespace stoker::data
