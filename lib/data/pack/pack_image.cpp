// SPDX-License-Identifier: Apache-2.0
#include "data/pack/pack_image.h"

#include <algorithm>

#include "data/image/contact_sheet.h"
#include "data/image/jpeg/jpeg_encode.h"

namespace stoker::data {
namespace {

constexpr int kUsualQuality = 90;

}  // namespace

std::string ImagePacker::pack(const SampleContent& content, std::vector<uint8_t>& file, ImageFormat& format) {
  ImageHeader header;
  if (content.is_pixels()) {
    header.width = content.width;
    header.height = content.height;
    header.format = ImageFormat::png;
  } else if (std::string reason = read_header(content.bytes, content.size, recipe_.limits, header); !reason.empty()) {
    return reason;
  }
  const bool too_large = recipe_.max_side > 0 && std::max(header.width, header.height) > recipe_.max_side;
  // The range is applied to images that are resized: the others must not be read over another one later.
  const bool is_narrowed = recipe_.max_side > 0 && recipe_.limits.range.is_set() && header.bits > 8;
  if (!content.is_pixels() && !too_large && !is_narrowed && recipe_.quality == 0) {
    format = header.format;
    file.clear();
    if (recipe_.progressive_to_baseline && format == ImageFormat::jpeg) {
      std::string reason = to_baseline_jpeg(content.bytes, content.size, recipe_.limits, file);
      if (!reason.empty()) return reason;
    }
    if (file.empty()) file.assign(content.bytes, content.bytes + content.size);
    return "";
  }
  if (std::string reason = decode(content, header); !reason.empty()) return reason;
  if (too_large) shrink();
  encode(recipe_.quality > 0 ? ImageFormat::jpeg : header.format, file, format);
  return "";
}

/// Leaves the pixels in image_.
std::string ImagePacker::decode(const SampleContent& content, ImageHeader& header) {
  if (!content.is_pixels()) {
    const int channels = header.channels == 1 ? 1 : 3;
    return decode_image(content.bytes, content.size, channels, recipe_.limits, image_);
  }
  image_.width = content.width;
  image_.height = content.height;
  image_.channels = content.channels;
  image_.pixels.assign(content.bytes, content.bytes + content.size);
  return "";
}

/// image_ with its longer side at max_side; the shorter one rounded, at least 1.
void ImagePacker::shrink() {
  const int64_t longer = std::max(image_.width, image_.height);
  const auto scaled = [&](int side) {
    return static_cast<int>(std::max<int64_t>(1, (2 * side * recipe_.max_side + longer) / (2 * longer)));
  };
  shrunk_.width = scaled(image_.width);
  shrunk_.height = scaled(image_.height);
  shrunk_.channels = image_.channels;
  shrunk_.pixels.resize(static_cast<size_t>(shrunk_.width) * static_cast<size_t>(shrunk_.height) *
                        static_cast<size_t>(shrunk_.channels));
  ResampleTask task;
  task.source = image_.pixels.data();
  task.source_stride = int64_t{image_.width} * image_.channels;
  task.source_width = image_.width;
  task.source_height = image_.height;
  task.channels = image_.channels;
  task.resized_width = task.out_width = shrunk_.width;
  task.resized_height = task.out_height = shrunk_.height;
  resample(task, scratch_, shrunk_.pixels.data());
  std::swap(image_, shrunk_);
}

void ImagePacker::encode(ImageFormat wanted, std::vector<uint8_t>& file, ImageFormat& format) {
  const uint8_t* const pixels = image_.pixels.data();
  if (wanted == ImageFormat::jpeg) {
    const int quality = recipe_.quality > 0 ? static_cast<int>(recipe_.quality) : kUsualQuality;
    encode_jpeg(pixels, image_.width, image_.height, image_.channels, quality, file);
    format = ImageFormat::jpeg;
  } else {
    encode_png(pixels, image_.width, image_.height, image_.channels, file);
    format = ImageFormat::png;
  }
}

}  // namespace stoker::data
