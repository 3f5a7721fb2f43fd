// SPDX-License-Identifier: Apache-2.0
#include "data/container/hdf5_chunk_tree.h"

#include <algorithm>

#include "core/error.h"
#include "core/format.h"

namespace stoker::data {
namespace {

constexpr uint64_t kObjectHeadBytes = 16, kMessageHead = 8, kNodeHead = 24, kAddressBytes = 8;
constexpr uint16_t kLayoutMessage = 0x0008, kContinuation = 0x0010;
constexpr uint8_t kChunkedLayout = 2, kChunkNode = 1;
constexpr uint64_t kMaxBlocks = 64, kMaxBlockBytes = 1 << 20;  ///< of an object header

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
      fail(at, "this is no node of a tree of chunks");
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
