// SPDX-License-Identifier: Apache-2.0
// Decoded chunks that several samples share, kept in bounded memory.
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

namespace stoker::data {

/// Safe from any thread. Threads that want the same chunk wait for the one that decodes it; others do not.
class ChunkCache {
 public:
  /// Bytes of content; what is in use beyond that goes when its users do.
  explicit ChunkCache(int64_t budget_bytes) : partition_budget_(budget_bytes / kPartitions) {}

  using Content = std::shared_ptr<const std::vector<uint8_t>>;
  /// Fills a content; returns "" or why it cannot.
  using Make = std::function<std::string(std::vector<uint8_t>&)>;
  /// The content of chunk `id` in `content`, as kept or as `make` gives it. Returns "" or what `make`
  /// returned; what it throws passes through. Failures are not kept.
  std::string get(uint64_t id, const Make& make, Content& content);

 private:
  static constexpr int64_t kPartitions = 16;
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

  std::shared_ptr<Slot> slot_of(Partition& partition, uint64_t id);
  void count(Partition& partition, uint64_t id, const Slot& slot);

  const int64_t partition_budget_;  ///< bytes
  std::array<Partition, kPartitions> partitions_;
};

}  // namespace stoker::data
