// SPDX-License-Identifier: Apache-2.0
#include "engine/memory/activation_arena.h"

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <unordered_map>

#include "engine/memory/best_fit_heap.h"

namespace stoker::engine {
namespace {

#if defined(__has_feature)
#define STOKER_HAS_FEATURE(feature) __has_feature(feature)
#else
#define STOKER_HAS_FEATURE(feature) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || STOKER_HAS_FEATURE(address_sanitizer)
constexpr bool kIsSanitized = true;  // a block of its own from the C library each, so that writing past its end is seen
#else
constexpr bool kIsSanitized = false;
#endif

thread_local int open_scopes = 0;

int64_t rounded_up(int64_t bytes, int64_t step) { return (bytes + step - 1) / step * step; }

/// Addresses are reserved at the start, as many as the machine has memory and swap, and become memory as the heap
/// grows.
class AddressRange {
 public:
  bool reserve() {
    struct rlimit addresses {};
    if (::getrlimit(RLIMIT_AS, &addresses) != 0 || addresses.rlim_cur != RLIM_INFINITY) return false;
    struct sysinfo machine {};
    if (::sysinfo(&machine) != 0) return false;
    const auto bytes = static_cast<int64_t>((machine.totalram + machine.totalswap) * machine.mem_unit) / kPage * kPage;
    void* const begin = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin == MAP_FAILED) return false;
    ::madvise(begin, bytes,
              MADV_HUGEPAGE);  // fewer faults and TLB misses; a kernel without them returns an error, which is ignored
    begin_ = static_cast<char*>(begin);
    reserved_ = bytes;
    return true;
  }
  /// False where there is no memory for it.
  bool reach(int64_t end) {
    if (end <= usable_) return true;
    const int64_t wanted = std::min(rounded_up(end, kPage), reserved_);
    if (end > wanted || ::mprotect(begin_, wanted, PROT_READ | PROT_WRITE) != 0) return false;
    usable_ = wanted;
    return true;
  }
  void give_back(int64_t offset, int64_t bytes) const {
    const int64_t page = ::sysconf(_SC_PAGESIZE), first = rounded_up(offset, page),
                  end = (offset + bytes) / page * page;
    if (first < end) ::madvise(begin_ + first, end - first, MADV_DONTNEED);
  }
  /// So that it is no longer counted as memory of the process either, as a limit of that does (RLIMIT_DATA).
  void give_back_beyond(int64_t high_water_mark) {
    const int64_t end = rounded_up(high_water_mark, kPage);
    if (end >= usable_) return;
    ::madvise(begin_ + end, usable_ - end, MADV_DONTNEED);
    if (::mprotect(begin_ + end, usable_ - end, PROT_NONE) == 0) usable_ = end;
  }
  char* at(int64_t offset) const { return begin_ + offset; }
  bool has(const void* memory) const {
    const auto* const at = static_cast<const char*>(memory);
    return at >= begin_ && at < begin_ + reserved_;
  }
  int64_t offset_of(const void* memory) const { return static_cast<const char*>(memory) - begin_; }

 private:
  static constexpr int64_t kPage = 2 << 20;  // bytes: a huge one

  char* begin_ = nullptr;
  int64_t reserved_ = 0, usable_ = 0;  // bytes
};

/// Working memory in one range of addresses.
class Arena {
 public:
  bool reserve() { return range_.reserve(); }
  bool has(const void* memory) const { return range_.has(memory); }
  void give_back() {
    const std::lock_guard<std::mutex> lock(mutex_);
    heap_.shrink();
    heap_.visit_gaps([this](int64_t offset, int64_t bytes) { range_.give_back(offset, bytes); });
    range_.give_back_beyond(heap_.high_water_mark());
  }
  int64_t high_water_mark() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return heap_.high_water_mark();
  }
  int64_t held() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return held_;
  }

  void* cut(int64_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const int64_t offset = heap_.allocate(bytes);
    if (offset == BestFitHeap::kNoOffset) return nullptr;
    char* const memory = range_.at(offset);
    try {
      blocks_.emplace(memory, bytes);
    } catch (const std::bad_alloc&) {
      heap_.release(offset, bytes);
      throw;
    }
    held_ += bytes;
    return memory;
  }

  void put_back(void* memory) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = blocks_.find(memory);
    const int64_t bytes = found->second;
    held_ -= bytes;
    blocks_.erase(found);
    try {
      heap_.release(range_.offset_of(memory), bytes);
    } catch (const std::bad_alloc&) {  // a tensor must still be able to end: its offset is lost
    }
  }

 private:
  std::mutex mutex_;
  AddressRange range_;
  BestFitHeap heap_{[this](int64_t high_water_mark) { return range_.reach(high_water_mark); }};
  std::unordered_map<void*, int64_t> blocks_;  ///< bytes of those that are held
  int64_t held_ = 0;
};

/// LibTorch's allocator of CPU tensors, and working memory where a scope is open.
class ActivationArena final : public CpuAllocator<ActivationArena> {
 public:
  bool install() {
    if (kIsSanitized || !arena_.reserve()) return false;
    c10::SetCPUAllocator(this);
    return true;
  }
  Arena& arena() { return arena_; }

  /// Never destroyed: tensors of static lifetime may come after it.
  static ActivationArena& instance() {
    static ActivationArena* const memory = new ActivationArena;
    return *memory;
  }

  static c10::DataPtr block(size_t bytes) {
    const int64_t taken = arena_block_bytes(static_cast<int64_t>(bytes));
    if (open_scopes == 0 || taken == 0) return c10::GetDefaultCPUAllocator()->allocate(bytes);
    Arena& arena = instance().arena_;
    void* const memory = arena.cut(taken);
    TORCH_CHECK(memory != nullptr, "can't allocate memory: ", bytes, " bytes beside ", arena.high_water_mark(),
                " that activations and gradients have taken");
    return {memory, memory, &free_block, c10::Device(c10::DeviceType::CPU)};
  }

  static void free_block(void* memory) {
    if (memory == nullptr) return;
    Arena& arena = instance().arena_;
    arena.has(memory) ? arena.put_back(memory) : c10::GetDefaultCPUAllocator()->raw_deleter()(memory);
  }

 private:
  Arena arena_;
};

}  // namespace

ActivationArenaScope::ActivationArenaScope() { ++open_scopes; }
ActivationArenaScope::~ActivationArenaScope() { --open_scopes; }

bool install_activation_arena() {
  static const bool is_installed = ActivationArena::instance().install();
  return is_installed;
}

void trim_activation_arena() { ActivationArena::instance().arena().give_back(); }

int64_t activation_arena_high_water_mark() { return ActivationArena::instance().arena().high_water_mark(); }
int64_t activation_arena_held() { return ActivationArena::instance().arena().held(); }

}  // namespace stoker::engine
