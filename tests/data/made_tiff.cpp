// SPDX-License-Identifier: Apache-2.0
#include "made_tiff.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

namespace stoker::data {
namespace {

/// Numbers in the order of bytes of a file.
class TiffBytes {
 public:
  explicit TiffBytes(bool big) : big_(big) {}
  void u16(uint32_t value) { put(value, 2); }
  void u32(uint32_t value) { put(value, 4); }
  void u8(uint32_t value) { put(value, 1); }
  Bytes bytes;

 private:
  void put(uint32_t value, int count) {
    for (int i = 0; i < count; ++i) {
      bytes.push_back(static_cast<uint8_t>(value >> 8 * (big_ ? count - 1 - i : i)));
    }
  }
  const bool big_;
};

Bytes packed(const Bytes& plain, bool deflated) {
  if (!deflated) return plain;
  uLongf size = compressBound(plain.size());
  Bytes out(size);
  ::compress(out.data(), &size, plain.data(), plain.size());
  out.resize(size);
  return out;
}

struct Tag {
  uint32_t id, type;
  std::vector<uint32_t> values;
};

}  // namespace

uint16_t band_value(const TiffRecipe& recipe, int x, int y, int band, int salt) {
  const int value = 7 * x + 31 * y + 1013 * band + 257 * salt + 11;
  return static_cast<uint16_t>(recipe.bits == 8 ? value & 0xFF : value & 0xFFFF);
}

Bytes band_tiff(const TiffRecipe& recipe, int salt) {
  const int planes = recipe.planar ? recipe.bands : 1, each = recipe.bands / planes;
  const int piece_width = recipe.tile > 0 ? recipe.tile : recipe.width;
  const int piece_height = recipe.tile > 0 ? recipe.tile : recipe.rows_per_strip;
  TiffBytes file(recipe.big_endian);
  file.u8(recipe.big_endian ? 'M' : 'I');
  file.u8(recipe.big_endian ? 'M' : 'I');
  file.u16(42);
  file.u32(0);  // where the directory lies; known at the end
  std::vector<uint32_t> offsets, counts;
  for (int plane = 0; plane < planes; ++plane) {
    for (int top = 0; top < recipe.height; top += piece_height) {
      for (int left = 0; left < recipe.width; left += piece_width) {
        const int rows = recipe.tile > 0 ? piece_height : std::min(piece_height, recipe.height - top);
        TiffBytes piece(recipe.big_endian);
        for (int y = top; y < top + rows; ++y) {
          for (int x = left; x < left + piece_width; ++x) {
            for (int band = plane * each; band < (plane + 1) * each; ++band) {
              const uint32_t value = band_value(recipe, x, y, band, salt);
              recipe.bits == 8 ? piece.u8(value) : piece.u16(value);
            }
          }
        }
        const Bytes stored = packed(piece.bytes, recipe.deflated);
        offsets.push_back(static_cast<uint32_t>(file.bytes.size()));
        counts.push_back(static_cast<uint32_t>(stored.size()));
        file.bytes.insert(file.bytes.end(), stored.begin(), stored.end());
      }
    }
  }
  const auto number = [](int value) { return std::vector<uint32_t>{static_cast<uint32_t>(value)}; };
  constexpr uint32_t kShort = 3, kLong = 4;
  const auto bands = static_cast<size_t>(recipe.bands);
  std::vector<Tag> tags = {{256, kLong, number(recipe.width)},
                           {257, kLong, number(recipe.height)},
                           {258, kShort, std::vector<uint32_t>(bands, static_cast<uint32_t>(recipe.bits))},
                           {259, kShort, number(recipe.deflated ? 8 : 1)},
                           {262, kShort, number(recipe.colour_kind)},
                           {277, kShort, number(recipe.bands)},
                           {284, kShort, number(recipe.planar ? 2 : 1)}};
  if (recipe.tile > 0) {
    tags.push_back({322, kLong, number(recipe.tile)});
    tags.push_back({323, kLong, number(recipe.tile)});
    tags.push_back({324, kLong, offsets});
    tags.push_back({325, kLong, counts});
  } else {
    tags.push_back({273, kLong, offsets});
    tags.push_back({278, kLong, number(recipe.rows_per_strip)});
    tags.push_back({279, kLong, counts});
  }
  if (recipe.extra >= 0) {
    const size_t colours = recipe.colour_kind == 2 ? 3 : 1;
    tags.push_back({338, kShort, std::vector<uint32_t>(bands - colours, static_cast<uint32_t>(recipe.extra))});
  }
  std::sort(tags.begin(), tags.end(), [](const Tag& a, const Tag& b) { return a.id < b.id; });
  std::vector<uint32_t> places;
  for (const Tag& tag : tags) {
    places.push_back(static_cast<uint32_t>(file.bytes.size()));
    if (tag.values.size() * (tag.type == kShort ? 2 : 4) <= 4) continue;
    for (const uint32_t value : tag.values) tag.type == kShort ? file.u16(value) : file.u32(value);
  }
  if (file.bytes.size() % 2 != 0) file.u8(0);
  TiffBytes start(recipe.big_endian);
  start.u32(static_cast<uint32_t>(file.bytes.size()));
  std::copy(start.bytes.begin(), start.bytes.end(), file.bytes.begin() + 4);
  file.u16(static_cast<uint32_t>(tags.size()));
  for (size_t i = 0; i < tags.size(); ++i) {
    file.u16(tags[i].id);
    file.u16(tags[i].type);
    file.u32(static_cast<uint32_t>(tags[i].values.size()));
    TiffBytes inside(recipe.big_endian);
    for (const uint32_t value : tags[i].values) tags[i].type == kShort ? inside.u16(value) : inside.u32(value);
    inside.bytes.resize(std::max<size_t>(inside.bytes.size(), 4));
    if (inside.bytes.size() > 4) {
      file.u32(places[i]);
    } else {
      file.bytes.insert(file.bytes.end(), inside.bytes.begin(), inside.bytes.end());
    }
  }
  file.u32(0);
  return file.bytes;
}

}  // namespace stoker::data
