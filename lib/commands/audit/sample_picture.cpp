// SPDX-License-Identifier: Apache-2.0
#include "commands/audit/sample_picture.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/text/base64.h"
#include "data/image/jpeg/jpeg_encode.h"
#include "data/probe/input_statistics.h"
#include "data/resample/resample.h"

namespace stoker::train {
namespace {

constexpr int kLongestSide = 112;  // pixels
constexpr int kQuality = 85;

/// Packed pixels of 1 or 3 channels.
std::string jpeg_of(const uint8_t* pixels, int width, int height, int channels) {
  const double scale = std::min(1.0, static_cast<double>(kLongestSide) / std::max(width, height));
  const auto scaled = [&](int side) { return std::max(1, static_cast<int>(std::lround(side * scale))); };
  data::ResampleTask task;
  task.source = pixels;
  task.source_stride = int64_t{width} * channels;
  task.source_width = width;
  task.source_height = height;
  task.channels = channels;
  task.resized_width = task.out_width = scaled(width);
  task.resized_height = task.out_height = scaled(height);
  std::vector<uint8_t> small(static_cast<size_t>(task.out_width) * static_cast<size_t>(task.out_height) *
                             static_cast<size_t>(channels)),
      jpeg;
  data::ResampleScratch scratch;
  data::resample(task, scratch, small.data());
  data::encode_jpeg(small.data(), task.out_width, task.out_height, channels, kQuality, jpeg);
  return core::base64(jpeg);
}

}  // namespace

std::string sample_picture(const data::Source& source, int64_t index, const data::DecodeLimits& limits) {
  std::vector<uint8_t> buffer;
  data::SampleContent content;
  const data::FrameSource* const videos = source.frames();
  const std::string reason = videos == nullptr
                                 ? source.read(index, buffer, content)
                                 : videos->read_frame(index, videos->frame_count(index) / 2, buffer, content);
  if (!reason.empty()) return "";
  if (content.element != data::Element::uint8 || content.is_pixels()) {
    const data::Picture picture =
        data::picture_of(content.bytes, {0, content.height, content.width, content.channels, content.element, 1});
    return jpeg_of(picture.pixels.data(), static_cast<int>(picture.width), static_cast<int>(picture.height),
                   static_cast<int>(picture.channels));
  }
  try {
    data::ImageHeader header;
    data::ImageBuffer image;
    if (!data::read_header(content.bytes, content.size, limits, header).empty()) return "";
    const int channels = header.channels == 1 ? 1 : 3;
    if (!data::decode_image(content.bytes, content.size, channels, limits, image).empty()) return "";
    return jpeg_of(image.pixels.data(), image.width, image.height, channels);
  } catch (const core::Error& error) {
    if (error.kind() != core::ErrorKind::data) throw;
    return "";  // took too long
  }
}

}  // namespace stoker::train
