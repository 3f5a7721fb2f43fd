// SPDX-License-Identifier: Apache-2.0
#include "data/video/video_container.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "core/format.h"

namespace stoker::data {
namespace {

constexpr int kMostParts = 1'000'000;  // of a file that are looked at

/// The first bytes of a part.
class PartHead {
 public:
  PartHead(const ByteReader& file, uint64_t at) {
    size_ = at < file.size() ? std::min<uint64_t>(bytes_.size(), file.size() - at) : 0;
    file.read(at, bytes_.data(), size_);
  }
  ByteView view() const { return {bytes_.data(), size_}; }

 private:
  std::array<uint8_t, 16> bytes_{};
  uint64_t size_ = 0;
};

uint64_t big64(const ByteView& bytes, uint64_t at) {
  return static_cast<uint64_t>(bytes.big32(at)) << 32 | bytes.big32(at + 4);
}

bool begins_as_mp4(const ByteView& head) {
  for (const char* const box : {"ftyp", "moov", "mdat", "wide", "free", "skip", "pnot"}) {
    if (head.matches(4, box)) return true;
  }
  return false;
}

/// Boxes have their length and a name of four letters in front.
void walk_mp4(const ByteReader& file, VideoOutline& outline) {
  bool has_index = false;
  uint64_t at = 0;
  for (int parts = 0; parts < kMostParts && at + 8 <= file.size(); ++parts) {
    const PartHead part(file, at);
    const ByteView head = part.view();
    std::string name;
    for (uint64_t i = 4; i < 8; ++i) name += static_cast<char>(head.u8(i));
    if (!std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) != 0 || c == ' '; })) break;
    uint64_t length = head.big32(0);
    if (length == 0) length = file.size() - at;  // up to the end
    if (length == 1) length = big64(head, 8);
    if (length < 8) break;
    has_index = has_index || name == "moov";
    outline.is_fragmented = outline.is_fragmented || name == "moof";
    if (length > file.size() - at) {
      outline.cut_short =
          core::format("cut short: its part '{}' needs {} bytes more", name, length - (file.size() - at));
      return;
    }
    at += length;
  }
  if (!has_index) outline.cut_short = "cut short: its index (moov), which is written last, is missing";
}

/// The length of an EBML element at `at` in `head`, and where its content begins; all bits set: not known.
struct EbmlLength {
  uint64_t value = 0, content = 0;
  bool is_known = true;
};

EbmlLength ebml_length(const ByteView& head, uint64_t at) {
  uint64_t bytes = 1;
  while (bytes <= 8 && (head.u8(at) & (0x100u >> bytes)) == 0) ++bytes;
  if (bytes > 8) return {0, at + 1, false};
  EbmlLength length{head.u8(at) & ((0x100u >> bytes) - 1), at + bytes, true};
  uint64_t all = (0x100u >> bytes) - 1;
  for (uint64_t i = 1; i < bytes; ++i) {
    length.value = length.value << 8 | head.u8(at + i);
    all = all << 8 | 0xFF;
  }
  length.is_known = length.value != all;
  return length;
}

void walk_matroska(const ByteReader& file, VideoOutline& outline) {
  constexpr uint32_t kSegment = 0x18538067;
  const PartHead first(file, 0);
  const EbmlLength header = ebml_length(first.view(), 4);
  if (!header.is_known || header.value > file.size()) return;
  const uint64_t at = header.content + header.value;
  const PartHead second(file, at);
  if (second.view().big32(0) != kSegment) return;
  const EbmlLength segment = ebml_length(second.view(), 4);
  const uint64_t begin = at + segment.content;
  if (!segment.is_known || begin > file.size() || segment.value <= file.size() - begin) return;
  outline.cut_short = core::format("cut short: it needs {} bytes more", segment.value - (file.size() - begin));
}

void walk_avi(const ByteReader& file, VideoOutline& outline) {
  uint64_t at = 0;
  for (int parts = 0; parts < kMostParts && at + 12 <= file.size(); ++parts) {
    const PartHead part(file, at);
    const ByteView head = part.view();
    const uint64_t length = head.little32(4);
    if (!head.matches(0, "RIFF") || length == 0) return;
    if (length > file.size() - at - 8) {
      outline.cut_short = core::format("cut short: it needs {} bytes more", length - (file.size() - at - 8));
      return;
    }
    at += 8 + length + length % 2;
  }
}

}  // namespace

VideoOutline outline_of(const ByteReader& file) {
  VideoOutline outline;
  const PartHead part(file, 0);
  const ByteView head = part.view();
  if (head.matches(0, "RIFF") && head.matches(8, "AVI ")) {
    outline.container = VideoContainer::avi;
    walk_avi(file, outline);
  } else if (head.matches(0, "\x1A\x45\xDF\xA3")) {
    outline.container = VideoContainer::matroska;
    walk_matroska(file, outline);
  } else if (begins_as_mp4(head)) {
    outline.container = VideoContainer::mp4;
    walk_mp4(file, outline);
  }
  return outline;
}

}  // namespace stoker::data
