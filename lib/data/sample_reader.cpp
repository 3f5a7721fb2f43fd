// SPDX-License-Identifier: Apache-2.0
#include "data/sample_reader.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/format.h"
#include "data/convert.h"

namespace stoker::data {
namespace {

/// Whole pixels inside of the image.
Region part_that_matters(const SampleContent& content, int width, int height) {
  if (content.crop_width <= 0 || content.crop_height <= 0) return {0, 0, width, height};
  const auto inside = [](double value, int low, int high) {
    return static_cast<int>(std::clamp(value, static_cast<double>(low), static_cast<double>(high)));
  };
  const int left = inside(std::floor(content.crop_left), 0, width - 1);
  const int top = inside(std::floor(content.crop_top), 0, height - 1);
  const int right = inside(std::ceil(content.crop_left + content.crop_width), left + 1, width);
  const int bottom = inside(std::ceil(content.crop_top + content.crop_height), top + 1, height);
  return {left, top, right - left, bottom - top};
}

}  // namespace

std::string SampleReader::read_into(int64_t sample, int64_t epoch, uint32_t round, uint8_t* row,
                                    float* targets, StageTimes& times) {
  SampleContent content;
  {
    const StageTimer timer(times.read);
    if (std::string cause = source_.read(sample, encoded_, content); !cause.empty()) return cause;
  }
  times.read -= content.decode_nanoseconds;
  times.decode += content.decode_nanoseconds;
  // A sample that an epoch shows several times is varied anew each time.
  const uint64_t drawn_for = static_cast<uint64_t>(sample) | static_cast<uint64_t>(round) << 32;
  core::Rng rng(seed_, core::RngPurpose::augment, static_cast<uint64_t>(epoch), drawn_for);
  SampleGeometry geometry;
  if (content.is_pixels()) {
    write_pixels(content, rng, geometry, row, times);
  } else {
    try {
      if (std::string cause = write_encoded(content, rng, geometry, row, times); !cause.empty()) return cause;
    } catch (const core::Error& error) {
      throw core::Error(error.kind(), core::printable(source_.name(sample)) + ": " + error.what(), error.hint());
    }
  }
  if (plan_.augment.does_anything()) {
    const StageTimer timer(times.augment);
    const SquareImage image{row, static_cast<int>(plan_.img_size), plan_.channels};
    augment(plan_.augment, {seed_, static_cast<uint64_t>(epoch), drawn_for}, image, augment_scratch_);
  }
  source_.targets(sample, targets);
  if (geometry.flip) plan_.target_rule.mirror(targets);
  return "";
}

std::string SampleReader::write_encoded(const SampleContent& content, core::Rng& rng, SampleGeometry& geometry,
                                        uint8_t* row, StageTimes& times) {
  {
    const StageTimer timer(times.decode);
    ImageHeader header;
    std::string reason = read_header(content.bytes, content.size, limits_, header);
    if (!reason.empty()) return reason;
    geometry = draw_geometry_within(content, header.width, header.height, rng);
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

SampleGeometry SampleReader::draw_geometry_within(const SampleContent& content, int width, int height,
                                                  core::Rng& rng) const {
  const Region part = part_that_matters(content, width, height);
  SampleGeometry geometry = draw_geometry(plan_, part.width, part.height, rng);
  geometry.left += part.left;
  geometry.top += part.top;
  return geometry;
}

void SampleReader::transform_image(const uint8_t* pixels, int height, int width,
                                   const SampleGeometry& geometry, uint8_t* row, StageTimes& times) {
  const StageTimer timer(geometry.keeps_size() ? times.write : times.resize);
  transform_into(pixels, height, width, plan_, geometry, scratch_, row);
}

void SampleReader::write_pixels(const SampleContent& content, core::Rng& rng, SampleGeometry& geometry,
                                uint8_t* row, StageTimes& times) {
  const uint8_t* pixels = content.bytes;
  if (content.channels != plan_.channels) {
    const StageTimer timer(times.decode);
    convert_channels(pixels, int64_t{content.height} * content.width, content.channels, plan_.channels,
                     converted_);
    pixels = converted_.data();
  }
  geometry = draw_geometry_within(content, content.width, content.height, rng);
  transform_image(pixels, content.height, content.width, geometry, row, times);
}

}  // namespace stoker::data
