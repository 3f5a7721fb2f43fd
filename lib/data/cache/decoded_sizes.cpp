// SPDX-License-Identifier: Apache-2.0
#include "data/cache/decoded_sizes.h"

#include <algorithm>
#include <atomic>

#include "core/system/worker_pool.h"

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

/// Calls take(position, decoded size of sample index_of(position)) for every position below `count`, on several
/// threads.
template <typename IndexOf, typename Take>
void visit_sizes(const Source& source, const HeaderScan& scan, int64_t count, const IndexOf& index_of,
                 const Take& take) {
  core::for_each_index(count, scan.threads, [&] {
    return [&, buffer = std::vector<uint8_t>()](int64_t position) mutable {
      take(position, decoded_size(source, scan, index_of(position), buffer));
    };
  });
}

}  // namespace

std::vector<int64_t> decoded_sizes(const Source& source, const HeaderScan& scan, int64_t first, int64_t count) {
  std::vector<int64_t> sizes(static_cast<size_t>(count));
  visit_sizes(
      source, scan, count, [&](int64_t position) { return first + position; },
      [&](int64_t position, int64_t bytes) { sizes[static_cast<size_t>(position)] = bytes; });
  return sizes;
}

int64_t estimated_decoded_bytes(const Source& source, const HeaderScan& scan) {
  constexpr int64_t kHeaders = 256;
  const int64_t headers = std::min(kHeaders, source.size());
  std::atomic<int64_t> total{0};
  visit_sizes(
      source, scan, headers, [&](int64_t position) { return position * source.size() / headers; },
      [&](int64_t, int64_t bytes) { total += bytes; });
  return headers == 0 ? 0
                      : static_cast<int64_t>(static_cast<double>(total) / static_cast<double>(headers) *
                                             static_cast<double>(source.size()));
}

}  // namespace stoker::data
