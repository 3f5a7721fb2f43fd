// SPDX-License-Identifier: Apache-2.0
#include "data/container/chunk_cache.h"

namespace stoker::data {

std::string ChunkCache::get(uint64_t id, const Make& make, Content& content) {
  Shelf& shelf = shelves_[id % kShelves];
  const std::shared_ptr<Slot> slot = slot_of(shelf, id);
  bool is_new = false;
  {
    const std::lock_guard<std::mutex> lock(slot->mutex);
    if (!slot->is_full) {
      if (std::string cause = make(slot->content); !cause.empty()) return cause;
      slot->is_full = is_new = true;
    }
  }
  if (is_new) count(shelf, id, *slot);
  content = Content(slot, &slot->content);
  return "";
}

std::shared_ptr<ChunkCache::Slot> ChunkCache::slot_of(Shelf& shelf, uint64_t id) {
  const std::lock_guard<std::mutex> lock(shelf.mutex);
  const auto found = shelf.places.find(id);
  if (found != shelf.places.end()) {
    shelf.by_use.splice(shelf.by_use.begin(), shelf.by_use, found->second);
    return found->second->slot;
  }
  shelf.by_use.push_front({id, std::make_shared<Slot>()});
  shelf.places.emplace(id, shelf.by_use.begin());
  return shelf.by_use.front().slot;
}

/// Adds a chunk that has just been decoded, and lets go of those that were not used for longest.
void ChunkCache::count(Shelf& shelf, uint64_t id, const Slot& slot) {
  const std::lock_guard<std::mutex> lock(shelf.mutex);
  const auto found = shelf.places.find(id);
  if (found == shelf.places.end() || found->second->slot.get() != &slot) return;  // let go of in the meantime
  found->second->bytes = static_cast<int64_t>(slot.content.size());
  shelf.bytes += found->second->bytes;
  while (shelf.bytes > shelf_budget_ && shelf.by_use.size() > 1) {
    const Kept& oldest = shelf.by_use.back();
    shelf.bytes -= oldest.bytes;
    shelf.places.erase(oldest.id);
    shelf.by_use.pop_back();
  }
}

}  // namespace stoker::data
