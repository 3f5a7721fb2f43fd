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
  core::Rng rng(seed_, core::RngPurpose::augment, static_cast<uint64_t>(epoch),
                static_cast<uint64_t>(sample));
  if (!content.is_pixels()) {
    try {
      return write_encoded(content, rng, row, times);
    } catch (const core::Error& error) {
      throw core::Error(error.kind(), core::printable(source_.name(sample)) + ": " + error.what(),
                        error.hint());
    }
  }
  write_pixels(content, rng, row, times);
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
  return "";
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
                     image_.pixels);
    pixels = image_.pixels.data();
  }
  const SampleGeometry geometry = draw_geometry(plan_, content.width, content.height, rng);
  transform_image(pixels, content.height, content.width, geometry, row, times);
}

}  // namespace stoker::data
