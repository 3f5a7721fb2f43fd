// SPDX-License-Identifier: Apache-2.0
#include "data/storage/tiff_directory.h"

#include <algorithm>

namespace stoker::data {
namespace {

constexpr uint64_t kMaxValues = 4096;  // that are compared of one tag

/// Numbers of a tag, short or long, in the file's order of bytes.
class TagValues {
 public:
  TagValues(const ByteView& tiff, bool little, uint64_t entry) : tiff_(tiff), little_(little) {
    size_ = u16(entry + 2) == 3 ? 2 : 4;
    count_ = u32(entry + 4);
    place_ = size_ * count_ <= 4 ? entry + 8 : u32(entry + 8);
  }
  uint64_t first() const { return at(0); }
  bool are_equal() const {
    for (uint64_t i = 1; i < std::min(count_, kMaxValues); ++i) {
      if (at(i) != at(0)) return false;
    }
    return true;
  }

 private:
  uint64_t at(uint64_t i) const { return size_ == 2 ? u16(place_ + 2 * i) : u32(place_ + 4 * i); }
  uint32_t u16(uint64_t at) const { return little_ ? tiff_.little16(at) : tiff_.big16(at); }
  uint32_t u32(uint64_t at) const { return little_ ? tiff_.little32(at) : tiff_.big32(at); }

  const ByteView& tiff_;
  const bool little_;
  uint64_t size_ = 0, count_ = 0, place_ = 0;
};

void take(uint64_t tag, const TagValues& values, TiffDirectory& directory) {
  switch (tag) {
    case 256: directory.width = values.first(); break;
    case 257: directory.height = values.first(); break;
    case 258:
      directory.bits = values.first();
      directory.has_equal_samples = directory.has_equal_samples && values.are_equal();
      break;
    case 259: directory.compression = values.first(); break;
    case 262: directory.colour_kind = values.first(); break;
    case 274: directory.orientation = values.first(); break;
    case 277: directory.samples = values.first(); break;
    case 284: directory.planes = values.first(); break;
    case 322: directory.tile_width = values.first(); break;
    case 323: directory.tile_height = values.first(); break;
    case 338: directory.extra = static_cast<int64_t>(values.first()); break;
    case 339:
      directory.format = values.first();
      directory.has_equal_samples = directory.has_equal_samples && values.are_equal();
      break;
    default: break;
  }
}

}  // namespace

bool is_tiff(const ByteView& file) {
  return file.matches(0, std::string_view("II*\0", 4)) || file.matches(0, std::string_view("MM\0*", 4));
}

std::string read_tiff_directory(const ByteView& tiff, TiffDirectory& directory) {
  directory = TiffDirectory();
  const bool little = tiff.matches(0, "II*");
  const uint64_t start = little ? tiff.little32(4) : tiff.big32(4);
  const uint64_t entries = little ? tiff.little16(start) : tiff.big16(start);
  if (!tiff.has(start, 2 + 12 * entries)) return "TIFF cut short: its directory lies beyond its end";
  for (uint64_t entry = start + 2; entry < start + 2 + 12 * entries; entry += 12) {
    take(little ? tiff.little16(entry) : tiff.big16(entry), TagValues(tiff, little, entry), directory);
  }
  return "";
}

}  // namespace stoker::data
