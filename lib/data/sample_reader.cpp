// SPDX-License-Identifier: Apache-2.0
#include "data/sample_reader.h"

#include "core/error.h"
#include "core/format.h"
#include "data/convert.h"

namespace stoker::data {

std::string SampleReader::read_into(int64_t sample, int64_t epoch, uint8_t* row, StageTimes& times) {
  SampleContent content;
  {
    const StageTimer timer(times.read);
    if (std::string cause = source_.read(sample, encoded_, content); !cause.empty()) return cause;
  }
  times.read -= content.decode_nanoseconds;
  times.decode += content.decode_nanoseconds;
  core::Rng rng(seed_, core::RngPurpose::augment, static_cast<uint64_t>(epoch),
                static_cast<uint64_t>(sample));
  if (!content.is_pixels()) {
    try {
      if (std::string reason = write_encoded(content, rng, row, times); !reason.empty()) return reason;
    } catch (const core::Error& error) {
      throw core::Error(error.kind(), core::printable(source_.name(sample)) + ": " + error.what(),
                        error.hint());
    }
  } else {
    write_pixels(content, rng, row, times);
  }
  if (plan_.augment.does_anything()) {
    const StageTimer timer(times.augment);
    const SquareImage image{row, static_cast<int>(plan_.img_size), plan_.channels};
    augment(plan_.augment, {seed_, static_cast<uint64_t>(epoch), static_cast<uint64_t>(sample)}, image,
            augment_scratch_);
  }
  return "";
}

std::string SampleReader::write_encoded(const SampleContent& content, core::Rng& rng, uint8_t* row,
                                        StageTimes& times) {
  SampleGeometry geometry;
  {
    const StageTimer timer(times.decode);
    ImageHeader header;
    std::string reason = read_header(content.bytes, content.size, limits_, header);
    if (!reason.empty()) return reason;
    geometry = draw_geometry(plan_, header.width, header.height, rng);
    Region region{geometry.left, geometry.top, geometry.width, geometry.height};
    reason = decode_region(content.bytes, content.size, plan_.channels, limits_, header, region, image_);
    if (!reason.empty()) return reason;
    geometry.left -= region.left;
    geometry.top -= region.top;
  }
  transform_image(image_.pixels.data(), image_.height, image_.width, geometry, row, times);
  forget_large_images(content.size);
  return "";
}

/// What a worker keeps is then that of usual images, so that memory does not grow with the number of workers times
/// the largest image.
void SampleReader::forget_large_images(uint64_t encoded_bytes) {
  constexpr size_t kUsualPixels = 640 << 10, kUsualFile = 384 << 10;  // bytes
  const int64_t pixels = int64_t{image_.height} * image_.width * image_.channels;
  forget_large(image_.pixels, static_cast<size_t>(pixels), kUsualPixels);
  forget_large(encoded_, encoded_bytes, kUsualFile);
}

void SampleReader::transform_image(const uint8_t* pixels, int height, int width,
                                   const SampleGeometry& geometry, uint8_t* row, StageTimes& times) {
  const StageTimer timer(geometry.keeps_size() ? times.write : times.resize);
  transform_into(pixels, height, width, plan_, geometry, scratch_, row);
}

void SampleReader::write_pixels(const SampleContent& content, core::Rng& rng, uint8_t* row,
                                StageTimes& times) {
  const uint8_t* pixels = content.bytes;
  if (content.channels != plan_.channels) {
    const StageTimer timer(times.decode);
    convert_channels(pixels, int64_t{content.height} * content.width, content.channels, plan_.channels,
                     converted_);
    pixels = converted_.data();
  }
  const SampleGeometry geometry = draw_geometry(plan_, content.width, content.height, rng);
  transform_image(pixels, content.height, content.width, geometry, row, times);
}

}  // namespace stoker::data
