// SPDX-License-Identifier: Apache-2.0
#include "data/audit/sample_facts.h"

#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"
#include "data/image/pixels/convert.h"

namespace stoker::data {
namespace {

/// One of 64 bits from a picture's size and bytes.
uint64_t digest_of(const void* bytes, uint64_t size, int width, int height) {
  const uint64_t content = core::hash64({static_cast<const char*>(bytes), size});
  return core::hash64(core::format("{} {} {}", width, height, content));
}

bool channels_agree(const uint8_t* rgb, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (rgb[3 * i] != rgb[3 * i + 1] || rgb[3 * i] != rgb[3 * i + 2]) return false;
  }
  return true;
}

/// Whether elements of `bytes_each` repeat the first one.
bool is_one_value(const uint8_t* bytes, uint64_t size, size_t bytes_each) {
  return size <= bytes_each || std::memcmp(bytes, bytes + bytes_each, size - bytes_each) == 0;
}

/// float16: an exponent of ones; float32: as std::isfinite().
bool has_non_finite(const SampleContent& content) {
  if (content.element == Element::float16) {
    for (uint64_t i = 0; i + 2 <= content.size; i += 2) {
      if ((content.bytes[i + 1] & 0x7C) == 0x7C) return true;  // little-endian
    }
    return false;
  }
  for (uint64_t i = 0; i + 4 <= content.size; i += 4) {
    float value = 0;
    std::memcpy(&value, content.bytes + i, sizeof(value));
    if (!std::isfinite(value)) return true;
  }
  return false;
}

}  // namespace

std::string kind_name(const SampleFacts& facts) {
  switch (facts.kind) {
    case SampleKind::gray: return core::format("gray, {} bits", facts.bits);
    case SampleKind::rgb: return core::format("RGB, {} bits", facts.bits);
    case SampleKind::rgba: return core::format("RGB with alpha, {} bits", facts.bits);
    case SampleKind::float16: return "float16";
    case SampleKind::float32: return "float32";
  }
  return "";
}

std::string SampleExaminer::examine(int64_t index, SampleFacts& facts) {
  facts = SampleFacts();
  gray_.clear();
  SampleContent content;
  std::string reason;
  try {
    const FrameSource* const videos = source_.frames();
    if (videos == nullptr) {
      reason = source_.read(index, encoded_, content);
      if (reason.empty()) reason = examine_image(content, facts);
    } else {
      const int64_t frames = videos->frame_count(index);
      std::string digests;
      for (int64_t step = 1; reason.empty() && step <= frames; ++step) {
        const int64_t frame = (frames / 2 + step) % frames;  // the one in the middle last
        reason = videos->read_frame(index, frame, encoded_, content);
        if (reason.empty()) reason = examine_image(content, facts);
        if (!reason.empty()) reason = core::printable(videos->frame_name(index, frame)) + ": " + reason;
        digests += core::format("{} ", facts.digest);
      }
      facts.digest = core::hash64(digests);
    }
  } catch (const core::Error& error) {
    if (error.kind() != core::ErrorKind::data) throw;
    reason = error.what();  // took too long to decode
  }
  facts.readable = reason.empty();
  return reason;
}

std::string SampleExaminer::examine_image(const SampleContent& content, SampleFacts& facts) {
  if (content.element != Element::uint8) {
    facts.kind = content.element == Element::float16 ? SampleKind::float16 : SampleKind::float32;
    facts.width = content.width;
    facts.height = content.height;
    facts.digest = digest_of(content.bytes, content.size, content.width, content.height);
    facts.one_value = is_one_value(content.bytes, content.size, static_cast<size_t>(bytes_of(content.element)));
    facts.not_finite = has_non_finite(content);
    return "";
  }
  if (content.is_pixels()) {
    facts.kind = content.channels == 1 ? SampleKind::gray : SampleKind::rgb;
    examine_pixels(content.bytes, content.width, content.height, content.channels, facts);
    return "";
  }
  ImageHeader header;
  if (std::string reason = read_header(content.bytes, content.size, limits_, header); !reason.empty()) return reason;
  const int channels = header.channels == 1 ? 1 : 3;
  if (std::string reason = decode_image(content.bytes, content.size, channels, limits_, image_); !reason.empty()) {
    return reason;
  }
  facts.kind = header.channels == 1 ? SampleKind::gray : header.channels == 4 ? SampleKind::rgba : SampleKind::rgb;
  facts.bits = static_cast<uint8_t>(header.bits);
  examine_pixels(image_.pixels.data(), image_.width, image_.height, channels, facts);
  give_back(image_.pixels, image_.pixels.size());
  return "";
}

void SampleExaminer::examine_pixels(const uint8_t* pixels, int width, int height, int channels, SampleFacts& facts) {
  const int64_t count = int64_t{width} * height;
  facts.width = width;
  facts.height = height;
  facts.one_value = is_one_value(pixels, static_cast<uint64_t>(count * channels), static_cast<size_t>(channels));
  facts.gray_as_rgb = channels == 3 && channels_agree(pixels, count);
  convert_channels(pixels, count, channels, 1, gray_);
  const bool as_gray = channels == 1 || facts.gray_as_rgb;
  facts.digest =
      digest_of(as_gray ? gray_.data() : pixels, static_cast<uint64_t>(count * (as_gray ? 1 : 3)), width, height);
}

}  // namespace stoker::data
