// SPDX-License-Identifier: Apache-2.0
#include "data/container/chunk_cache.h"

namespace stoker::data {

std::string ChunkCache::get(uint64_t id, const Make& make, Content& content) {
  Partition& partition = partitions_[id % kPartitions];
  const std::shared_ptr<Slot> slot = slot_of(partition, id);
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

std::shared_ptr<ChunkCache::Slot> ChunkCache::slot_of(Partition& partition, uint64_t id) {
  const std::lock_guard<std::mutex> lock(partition.mutex);
  const auto found = partition.places.find(id);
  if (found != partition.places.end()) {
    partition.by_use.splice(partition.by_use.begin(), partition.by_use, found->second);
    return found->second->slot;
  }
  partition.by_use.push_front({id, std::make_shared<Slot>()});
  partition.places.emplace(id, partition.by_use.begin());
  return partition.by_use.front().slot;
}

/// Adds a chunk that has just been decoded, and lets go of those that were not used for longest.
void ChunkCache::count(Partition& partition, uint64_t id, const Slot& slot) {
  const std::lock_guard<std::mutex> lock(partition.mutex);
  const auto found = partition.places.find(id);
  if (found == partition.places.end() || found->second->slot.get() != &slot) return;  // let go of in the meantime
  found->second->bytes = static_cast<int64_t>(slot.content.size());
  partition.bytes += found->second->bytes;
  while (partition.bytes > partition_budget_ && partition.by_use.size() > 1) {
    const Kept& oldest = partition.by_use.back();
    partition.bytes -= oldest.bytes;
    partition.places.erase(oldest.id);
    partition.by_use.pop_back();
  }
}

}  // namespace stoker::data
