// SPDX-License-Identifier: Apache-2.0
#include <gif_lib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "core/format.h"
#include "data/image/decoders.h"
#include "data/image/pixels/image_buffer.h"

namespace stoker::data {
namespace {

struct GifBytes {
  const ByteView* file;
  uint64_t at = 0;
};

int read_gif_bytes(GifFileType* gif, GifByteType* out, int count) {
  auto& bytes = *static_cast<GifBytes*>(gif->UserData);
  const uint64_t left = bytes.file->size() - bytes.at;
  const uint64_t taken = std::min<uint64_t>(left, static_cast<uint64_t>(std::max(count, 0)));
  std::memcpy(out, bytes.file->data() + bytes.at, taken);
  bytes.at += taken;
  return static_cast<int>(taken);
}

void close_gif(GifFileType* gif) { DGifCloseFile(gif, nullptr); }

/// A file up to the pixels of its first frame.
class GifFrame {
 public:
  explicit GifFrame(const ByteView& file) : bytes_{&file}, gif_(nullptr, close_gif) {
    int error = 0;
    gif_.reset(DGifOpen(&bytes_, read_gif_bytes, &error));
    if (gif_ == nullptr) {
      problem_ = text_of(error, bytes_);
      return;
    }
    find_frame();
  }
  const std::string& problem() const { return problem_; }
  /// The size of all frames, which a first frame that reaches beyond it widens.
  int width() const { return std::max(gif_->SWidth, gif_->Image.Left + gif_->Image.Width); }
  int height() const { return std::max(gif_->SHeight, gif_->Image.Top + gif_->Image.Height); }

  /// `canvas`: width() x height() indices.
  std::string read(std::vector<uint8_t>& canvas) {
    const GifImageDesc& image = gif_->Image;
    constexpr std::array<int, 4> kFirst = {0, 4, 2, 1}, kStep = {8, 8, 4, 2};
    for (size_t pass = 0; pass < (image.Interlace ? kFirst.size() : 1); ++pass) {
      for (int y = image.Interlace ? kFirst[pass] : 0; y < image.Height; y += image.Interlace ? kStep[pass] : 1) {
        uint8_t* const row = canvas.data() + int64_t{image.Top + y} * width() + image.Left;
        if (DGifGetLine(gif_.get(), row, image.Width) == GIF_ERROR) return text_of(gif_->Error, bytes_);
      }
    }
    return "";
  }
  /// Red, green, blue and alpha of each index.
  std::vector<uint8_t> colours() const {
    std::vector<uint8_t> table(256 * 4, 0);
    const ColorMapObject* const map = gif_->Image.ColorMap != nullptr ? gif_->Image.ColorMap : gif_->SColorMap;
    for (int i = 0; i < 256; ++i) {
      uint8_t* const colour = table.data() + static_cast<size_t>(i) * 4;
      std::fill_n(colour, 3, static_cast<uint8_t>(i));  // beyond the map, as in Pillow
      if (map != nullptr && i < map->ColorCount) {
        colour[0] = map->Colors[i].Red;
        colour[1] = map->Colors[i].Green;
        colour[2] = map->Colors[i].Blue;
      }
      colour[3] = i == transparent_ ? 0 : 255;
    }
    return table;
  }
  uint8_t index_outside() const { return static_cast<uint8_t>(std::max(transparent_, 0)); }

 private:
  static std::string text_of(int error, const GifBytes& bytes) {
    const char* const text = GifErrorString(error);
    const bool is_cut = text == nullptr || bytes.at >= bytes.file->size();
    if (is_cut || error != D_GIF_ERR_READ_FAILED) return core::format("damaged GIF: {}", is_cut ? "cut short" : text);
    return "GIF whose codes giflib does not read; convert it: convert 'FILE[0]' FILE.png";
  }

  void find_frame() {
    constexpr int kGraphics = 0xF9;
    for (;;) {
      // Zeros between blocks are passed over, as in Pillow; giflib reads each block byte by byte.
      while (bytes_.file->has(bytes_.at, 1) && bytes_.file->u8(bytes_.at) == 0) ++bytes_.at;
      GifRecordType kind = UNDEFINED_RECORD_TYPE;
      if (DGifGetRecordType(gif_.get(), &kind) == GIF_ERROR) return fail();
      if (kind == TERMINATE_RECORD_TYPE) {
        problem_ = "GIF without a frame";
        return;
      }
      if (kind == IMAGE_DESC_RECORD_TYPE) {
        if (DGifGetImageDesc(gif_.get()) == GIF_ERROR) return fail();
        return;
      }
      int code = 0;
      GifByteType* block = nullptr;
      if (DGifGetExtension(gif_.get(), &code, &block) == GIF_ERROR) return fail();
      if (code == kGraphics && block != nullptr && block[0] >= 4) transparent_ = (block[1] & 1) != 0 ? block[4] : -1;
      while (block != nullptr) {
        if (DGifGetExtensionNext(gif_.get(), &block) == GIF_ERROR) return fail();
      }
    }
  }
  void fail() { problem_ = text_of(gif_->Error, bytes_); }

  GifBytes bytes_;
  std::unique_ptr<GifFileType, void (*)(GifFileType*)> gif_;
  std::string problem_;
  int transparent_ = -1;
};

}  // namespace

std::string read_gif_header(const ByteView& file, ImageHeader& header) {
  const GifFrame frame(file);
  if (!frame.problem().empty()) return frame.problem();
  header.width = frame.width();
  header.height = frame.height();
  header.channels = 3;
  return "";
}

std::string decode_gif(const ByteView& file, const ImageHeader& header, int channels, ImageBuffer& out) {
  GifFrame frame(file);
  if (!frame.problem().empty()) return frame.problem();
  std::vector<uint8_t> canvas(static_cast<size_t>(header.width) * static_cast<size_t>(header.height),
                              frame.index_outside());
  if (std::string reason = frame.read(canvas); !reason.empty()) return reason;
  const std::vector<uint8_t> colours = frame.colours();
  start_image(header.width, header.height, channels, out);
  std::vector<uint8_t> row(static_cast<size_t>(header.width) * 4);
  for (int y = 0; y < header.height; ++y) {
    const uint8_t* const indices = canvas.data() + int64_t{y} * header.width;
    for (int x = 0; x < header.width; ++x) std::copy_n(colours.data() + indices[x] * 4, 4, row.data() + x * 4);
    convert_row(row.data(), header.width, 4, true, channels, row_of(out, y));
  }
  return "";
}

}  // namespace stoker::data
