// SPDX-License-Identifier: Apache-2.0
#include "data/cache/decoded_sizes.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "core/system/stop_signal.h"

namespace stoker::data {
namespace {

/// Holds the header of all but a few files; those are then read whole.
constexpr int64_t kHeadBytes = 32 << 10;

int64_t decoded_size(const Source& source, const HeaderScan& scan, int64_t index, std::vector<uint8_t>& buffer) {
  SampleContent content;
  if (!read_head(source, index, kHeadBytes, buffer, content).empty()) return 0;
  if (content.is_pixels()) return int64_t{content.height} * content.width * scan.channels;
  ImageHeader header;
  if (!read_header(content.bytes, content.size, scan.limits, header).empty()) {
    if (!source.read(index, buffer, content).empty()) return 0;
    if (!read_header(content.bytes, content.size, scan.limits, header).empty()) return 0;
  }
  return int64_t{header.height} * header.width * scan.channels;
}

/// Calls `look` with every position below `count`, each thread with a buffer of its own; rethrows the first
/// exception once all threads have ended.
void for_each_position(int64_t count, int threads,
                       const std::function<void(int64_t position, std::vector<uint8_t>& buffer)>& look) {
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      std::vector<uint8_t> buffer;
      for (int64_t position; (position = next.fetch_add(1, std::memory_order_relaxed)) < count;) {
        core::throw_if_stopped();
        look(position, buffer);
      }
    } catch (...) {
      next = count;
      const std::lock_guard<std::mutex> lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  std::vector<std::thread> helpers;
  try {
    for (int64_t i = 1; i < std::min<int64_t>(threads, count); ++i) helpers.emplace_back(work);
  } catch (const std::system_error&) {
    // No more threads to be had: those that are there do the work.
  }
  work();
  for (std::thread& helper : helpers) helper.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

std::vector<int64_t> decoded_sizes(const Source& source, const HeaderScan& scan, int64_t first, int64_t count) {
  std::vector<int64_t> sizes(static_cast<size_t>(count));
  for_each_position(count, scan.threads, [&](int64_t position, std::vector<uint8_t>& buffer) {
    sizes[static_cast<size_t>(position)] = decoded_size(source, scan, first + position, buffer);
  });
  return sizes;
}

int64_t estimated_decoded_bytes(const Source& source, const HeaderScan& scan) {
  constexpr int64_t kHeaders = 256;
  const int64_t headers = std::min(kHeaders, source.size());
  std::atomic<int64_t> total{0};
  for_each_position(headers, scan.threads, [&](int64_t position, std::vector<uint8_t>& buffer) {
    total += decoded_size(source, scan, position * source.size() / headers, buffer);
  });
  return headers == 0 ? 0
                      : static_cast<int64_t>(static_cast<double>(total) / static_cast<double>(headers) *
                                             static_cast<double>(source.size()));
}

}  // namespace stoker::data
