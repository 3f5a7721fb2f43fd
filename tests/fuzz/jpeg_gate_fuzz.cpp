// SPDX-License-Identifier: Apache-2.0
// JPEG bytes through header, whole decode, region decode and a resize on the way: no input may break memory or limits,
// and what two ways of decoding both accept must be the same pixels.
#include <algorithm>
#include <cstring>
#include <vector>

#include "data/image/decode.h"
#include "data/resample/resample.h"
#include "fuzz_target.h"
#include "plain_jpeg.h"

namespace {

using namespace stoker::data;
using stoker::fuzz::Choices;

constexpr DecodeLimits kLimits{/*max_megapixels=*/0.06,
                               /*max_side=*/2000,
                               /*max_jpeg_scans=*/20,
                               /*max_seconds=*/30,      false, {}, nullptr};

constexpr size_t kGuard = 4096;  // bytes: more than a row of the largest image

/// Old pixels must not show through: each decode starts from other rubbish. The buffer is larger than any
/// image needs, so that what is written too far is seen even where the decoder is not instrumented.
void fill_with(ImageBuffer& image, uint8_t rubbish) {
  image.pixels.assign(static_cast<size_t>(3e6 * kLimits.max_megapixels) + kGuard, rubbish);
}

/// After a decode, good or not, nothing behind the largest image that the header allows has changed.
void check_guard(const ImageBuffer& image, const ImageHeader& header, int channels, uint8_t rubbish) {
  const size_t needed =
      static_cast<size_t>(header.width) * static_cast<size_t>(header.height) * static_cast<size_t>(channels);
  const auto first = image.pixels.begin() + static_cast<std::ptrdiff_t>(needed);
  FUZZ_CHECK(std::all_of(first, first + kGuard, [&](uint8_t byte) { return byte == rubbish; }));
}

Region random_region(const ImageHeader& header, Choices& choices) {
  Region region{0, 0, header.width, header.height};
  if (choices.one_in(8)) return region;
  region.left = static_cast<int>(choices.below(static_cast<uint64_t>(header.width)));
  region.top = static_cast<int>(choices.below(static_cast<uint64_t>(header.height)));
  region.width = 1 + static_cast<int>(choices.below(static_cast<uint64_t>(header.width - region.left)));
  region.height = 1 + static_cast<int>(choices.below(static_cast<uint64_t>(header.height - region.top)));
  return region;
}

/// `wanted` as `part` holds it is `wanted` as the whole image has it. The rim around it may differ: smooth
/// upsampling lacks its neighbours there.
void check_region(const ImageBuffer& whole, const ImageBuffer& part, const Region& held, const Region& wanted,
                  int channels) {
  const auto offset = [&](const ImageBuffer& image, int x, int y) {
    return (static_cast<size_t>(y) * static_cast<size_t>(image.width) + static_cast<size_t>(x)) *
           static_cast<size_t>(channels);
  };
  const auto row_bytes = static_cast<size_t>(wanted.width) * static_cast<size_t>(channels);
  for (int y = wanted.top; y < wanted.top + wanted.height; ++y) {
    const uint8_t* const expected = whole.pixels.data() + offset(whole, wanted.left, y);
    const uint8_t* const found = part.pixels.data() + offset(part, wanted.left - held.left, y - held.top);
    FUZZ_CHECK(std::memcmp(expected, found, row_bytes) == 0);
  }
}

/// libjpeg accepts whatever the gate accepts, and their pixels are the same: nothing that makes ours faster may
/// change them.
void check_against_libjpeg(const uint8_t* bytes, size_t size, int channels, const ImageBuffer& whole) {
  static stoker::fuzz::PlainImage plain;
  FUZZ_CHECK(stoker::fuzz::decode_plainly(bytes, size, channels, plain));
  FUZZ_CHECK(plain.width == whole.width && plain.height == whole.height);
  FUZZ_CHECK(std::memcmp(plain.pixels.data(), whole.pixels.data(), plain.pixels.size()) == 0);
}

/// Resized while it is decoded, a part of the image is what the resize of that part of the whole gives; `reason`:
/// why there is no whole.
void check_resized(const uint8_t* bytes, size_t size, const ImageHeader& header, const ImageBuffer& whole,
                   const std::string& reason, const Region& part, int channels, Choices& choices) {
  static ResampleScratch scratch;
  static ScratchBytes band;
  static std::vector<uint8_t> found, expected;
  const auto side = [&choices] { return 1 + static_cast<int>(choices.below(40)); };
  ResampleTask task;
  task.channels = channels;
  task.source_width = part.width;
  task.source_height = part.height;
  task.resized_width = task.out_width = side();
  task.resized_height = task.out_height = side();
  task.mirror = choices.one_in(2);
  if (!can_decode_rows(header, part)) return;
  found.assign(static_cast<size_t>(task.out_width * task.out_height * channels), 0x55);
  ResizedRows rows(task, part.left, part.top, scratch, band, found.data());
  const std::string problem = decode_rows(bytes, size, channels, kLimits, rows.needed(), rows);
  if (!reason.empty()) return;
  FUZZ_CHECK(problem.empty());
  task.source_stride = int64_t{whole.width} * channels;
  task.source = whole.pixels.data() + part.top * task.source_stride + int64_t{part.left} * channels;
  expected.assign(found.size(), 0xAA);
  resample(task, scratch, expected.data());
  FUZZ_CHECK(found == expected);
}

struct Segment {
  size_t begin = 0, end = 0;
};

/// Marker segments up to the first scan, which is the last one here and takes the rest of the file.
std::vector<Segment> segments_of(const uint8_t* bytes, size_t size) {
  std::vector<Segment> segments;
  for (size_t at = 2; at + 4 <= size && bytes[at] == 0xFF;) {
    const size_t length = 2u + (static_cast<size_t>(bytes[at + 2]) << 8 | bytes[at + 3]);
    const bool is_scan = bytes[at + 1] == 0xDA;
    const size_t end = is_scan || length > size - at ? size : at + length;
    segments.push_back({at, end});
    if (is_scan) break;
    at = end;
  }
  return segments;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static ImageBuffer whole, part;
  Choices choices(bytes, size);
  const int channels = choices.one_in(2) ? 3 : 1;
  ImageHeader header;
  const std::string refusal = read_header(bytes, size, kLimits, header);
  fill_with(whole, 0xAA);
  if (!refusal.empty()) {
    FUZZ_CHECK(decode_image(bytes, size, channels, kLimits, whole) == refusal);
    return 0;
  }
  FUZZ_CHECK(header.width >= 1 && header.height >= 1);
  FUZZ_CHECK(header.width <= kLimits.max_side && header.height <= kLimits.max_side);
  FUZZ_CHECK(1e-6 * header.width * header.height <= kLimits.max_megapixels);
  if (header.format != ImageFormat::jpeg) return 0;  // the others have a target of their own

  const std::string reason = decode_image(bytes, size, channels, kLimits, whole);
  if (header.orientation == 1) check_guard(whole, header, channels, 0xAA);  // turned pixels lie in a block of their own
  if (reason.empty()) {
    FUZZ_CHECK(whole.width == header.width && whole.height == header.height && whole.channels == channels);
    if (header.orientation == 1 && header.channels != 4) check_against_libjpeg(bytes, size, channels, whole);
    FUZZ_CHECK(whole.pixels.size() >=
               static_cast<size_t>(header.width) * static_cast<size_t>(header.height) * static_cast<size_t>(channels));
  }
  for (int i = 0; i < 2; ++i) {
    const Region wanted = random_region(header, choices);
    Region held = wanted;
    check_resized(bytes, size, header, whole, reason, wanted, channels, choices);
    fill_with(part, 0x55);
    const std::string problem = decode_region(bytes, size, channels, kLimits, header, held, part);
    if (header.orientation == 1) {
      check_guard(part, {ImageFormat::jpeg, held.width, held.height}, channels, 0x55);
    }
    FUZZ_CHECK(!reason.empty() || problem.empty());  // a part of a good image is good
    if (!problem.empty()) continue;
    FUZZ_CHECK(part.width == held.width && part.height == held.height && part.channels == channels);
    FUZZ_CHECK(held.left >= 0 && held.top >= 0);
    FUZZ_CHECK(held.left + held.width <= header.width && held.top + held.height <= header.height);
    FUZZ_CHECK(held.left <= wanted.left && held.top <= wanted.top);
    FUZZ_CHECK(held.left + held.width >= wanted.left + wanted.width);
    FUZZ_CHECK(held.top + held.height >= wanted.top + wanted.height);
    if (reason.empty()) check_region(whole, part, held, wanted, channels);
  }
  return 0;
}

/// Most bytes of a JPEG are entropy-coded and tell little: half of the changes go to one segment, are doubled
/// or left out as a whole, and keep the lengths right.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* bytes, size_t size, size_t max_size, unsigned int seed) {
  Choices choices(seed);
  const std::vector<Segment> segments = segments_of(bytes, size);
  if (segments.empty() || choices.one_in(2)) return LLVMFuzzerMutate(bytes, size, max_size);
  const auto [begin, end] = segments[choices.below(segments.size())];
  std::vector<uint8_t> head(bytes, bytes + begin), segment(bytes + begin, bytes + end), tail(bytes + end, bytes + size);
  switch (choices.below(8)) {
    case 0: segment.clear(); break;
    case 1: segment.insert(segment.end(), bytes + begin, bytes + end); break;
    case 2: {  // elsewhere
      const size_t target = segments[choices.below(segments.size())].begin;
      if (target >= begin) break;
      head.insert(head.begin() + static_cast<std::ptrdiff_t>(target), segment.begin(), segment.end());
      segment.clear();
      break;
    }
    default: {
      const size_t body = 4;
      if (segment.size() <= body) break;
      const size_t old_size = segment.size() - body;
      segment.resize(segment.size() + 64);
      segment.resize(body + LLVMFuzzerMutate(segment.data() + body, old_size, old_size + 64));
      if (segment[1] != 0xDA && !choices.one_in(8)) {
        segment[2] = static_cast<uint8_t>((segment.size() - 2) >> 8);
        segment[3] = static_cast<uint8_t>(segment.size() - 2);
      }
    }
  }
  head.insert(head.end(), segment.begin(), segment.end());
  head.insert(head.end(), tail.begin(), tail.end());
  head.resize(std::min(head.size(), max_size));
  std::copy(head.begin(), head.end(), bytes);
  return head.size();
}
