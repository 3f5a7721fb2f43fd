// SPDX-License-Identifier: Apache-2.0
#include "data/cache/cached_source.h"

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

#include "core/error.h"
#include "core/format.h"
#include "data/cache/cache_plan.h"
#include "data/source.h"

namespace stoker::data {
namespace {

/// Address space that takes memory page by page, when it is written to.
class CacheMemory {
 public:
  explicit CacheMemory(int64_t bytes) : bytes_(static_cast<size_t>(bytes)) {
    if (bytes_ == 0) return;
    void* const memory =
        ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      throw core::Error(core::ErrorKind::out_of_memory,
                        core::format("cannot reserve {} for the cache: {}",
                                     core::bytes_text(static_cast<double>(bytes)), std::strerror(errno)),
                        "use a smaller --cache-budget, or --cache none");
    }
    begin_ = static_cast<uint8_t*>(memory);
    ::madvise(begin_, bytes_, MADV_DONTDUMP);
  }
  ~CacheMemory() {
    if (begin_ != nullptr) ::munmap(begin_, bytes_);
  }
  CacheMemory& operator=(CacheMemory&&) = delete;  // not copied, not moved

  uint8_t* at(uint64_t offset) const { return begin_ + offset; }

 private:
  uint8_t* begin_ = nullptr;
  const size_t bytes_;
};

/// A place goes from empty to filling to full; or to refused, when the sample is not what was planned for.
enum class Place : uint8_t { empty, filling, full, refused };

class CachedSource : public ForwardingSource {
 public:
  CachedSource(std::shared_ptr<const Source> source, CachePlan plan, const CacheSettings& settings)
      : ForwardingSource(std::move(source)),
        plan_(std::move(plan)),
        channels_(settings.channels),
        limits_(settings.limits),
        memory_(plan_.memory_bytes()),
        places_(static_cast<size_t>(plan_.held())),
        sides_(static_cast<size_t>(plan_.pixel_samples)) {
    plan_.offsets.shrink_to_fit();
  }

  SourceMemory memory() const override {
    SourceMemory memory = behind().memory();
    memory.cached_bytes += cached_bytes_.load(std::memory_order_relaxed);
    return memory;
  }

  std::string read(int64_t index, std::vector<uint8_t>& buffer, SampleContent& content) const override {
    if (index >= plan_.held()) return behind().read(index, buffer, content);
    std::atomic<Place>& place = places_[static_cast<size_t>(index)];
    Place now = place.load(std::memory_order_acquire);
    if (now == Place::full) {
      serve(index, content);
      return "";
    }
    if (now != Place::empty || !place.compare_exchange_strong(now, Place::filling)) {
      return behind().read(index, buffer, content);
    }
    Claim claim(place);
    if (std::string cause = behind().read(index, buffer, content); !cause.empty()) return cause;
    const bool filled = index < plan_.pixel_samples ? fill_pixels(index, content) : fill_bytes(index, content);
    claim.settle(filled ? Place::full : Place::refused);
    if (filled) serve(index, content);
    return "";
  }

 private:
  struct Sides {
    uint16_t height = 0, width = 0;
  };

  /// The right to fill a place; given back when reading threw or failed.
  class Claim {
   public:
    explicit Claim(std::atomic<Place>& place) : place_(place) {}
    ~Claim() { place_.store(end_, std::memory_order_release); }
    Claim& operator=(Claim&&) = delete;  // not copied, not moved
    void settle(Place end) { end_ = end; }

   private:
    std::atomic<Place>& place_;
    Place end_ = Place::empty;
  };

  uint64_t capacity(int64_t index) const {
    const auto i = static_cast<size_t>(index);
    return plan_.offsets[i + 1] - plan_.offsets[i];
  }
  uint8_t* at(int64_t index) const { return memory_.at(plan_.offsets[static_cast<size_t>(index)]); }

  /// False when the sample does not decode, or not to the size that its header promised.
  bool fill_pixels(int64_t index, SampleContent& content) const {
    using Clock = std::chrono::steady_clock;
    if (content.is_pixels()) return false;
    const Clock::time_point start = Clock::now();
    ImageBuffer image;
    const std::string reason = decode_image(content.bytes, content.size, channels_, limits_, image);
    const uint64_t bytes = uint64_t(image.height) * uint64_t(image.width) * uint64_t(channels_);
    constexpr int kMaxSide = 0xFFFF;
    const bool fits = reason.empty() && bytes <= capacity(index) && image.height <= kMaxSide && image.width <= kMaxSide;
    if (fits) {
      std::memcpy(at(index), image.pixels.data(), bytes);
      sides_[static_cast<size_t>(index)] = {static_cast<uint16_t>(image.height), static_cast<uint16_t>(image.width)};
      cached_bytes_.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
    }
    content.decode_nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
    return fits;
  }

  bool fill_bytes(int64_t index, const SampleContent& content) const {
    if (content.is_pixels() || static_cast<int64_t>(content.size) != data::stored_bytes(behind(), index)) return false;
    std::memcpy(at(index), content.bytes, content.size);
    cached_bytes_.fetch_add(static_cast<int64_t>(content.size), std::memory_order_relaxed);
    return true;
  }

  /// The content of a full place. Leaves the time of decoding in `content`.
  void serve(int64_t index, SampleContent& content) const {
    content.bytes = at(index);
    if (index >= plan_.pixel_samples) {
      content.size = static_cast<uint64_t>(data::stored_bytes(behind(), index));
      return;
    }
    const Sides sides = sides_[static_cast<size_t>(index)];
    content.height = sides.height;
    content.width = sides.width;
    content.channels = channels_;
    content.size = uint64_t{sides.height} * sides.width * static_cast<uint64_t>(channels_);
  }

  CachePlan plan_;
  const int channels_;
  const DecodeLimits limits_;
  const CacheMemory memory_;
  mutable std::vector<std::atomic<Place>> places_;  ///< [held()]
  mutable std::vector<Sides> sides_;                ///< [pixel_samples], of full places
  mutable std::atomic<int64_t> cached_bytes_{0};
};

}  // namespace

std::shared_ptr<const Source> make_cached_source(std::shared_ptr<const Source> source, CachePlan plan,
                                                 const CacheSettings& settings) {
  if (plan.held() == 0) return source;
  if (holds_videos(*source)) {
    auto frames = make_cached_source(make_frame_list(source), std::move(plan), settings);
    return with_frames_from(std::move(source), std::move(frames));
  }
  return std::make_shared<CachedSource>(std::move(source), std::move(plan), settings);
}

}  // namespace stoker::data
