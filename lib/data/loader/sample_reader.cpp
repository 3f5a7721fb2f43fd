// SPDX-License-Identifier: Apache-2.0
#include "data/loader/sample_reader.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/format.h"
#include "data/image/pixels/image_buffer.h"
#include "data/resample/resample.h"

namespace stoker::data {
namespace {

/// Whole pixels inside of an image of width x height.
Region pixels_of(const RegionOfInterest& roi, int width, int height) {
  if (roi.width <= 0 || roi.height <= 0) return {0, 0, width, height};
  const auto inside = [](double value, int low, int high) {
    return static_cast<int>(std::clamp(value, static_cast<double>(low), static_cast<double>(high)));
  };
  const int left = inside(std::floor(roi.left), 0, width - 1), top = inside(std::floor(roi.top), 0, height - 1);
  const int right = inside(std::ceil(roi.left + roi.width), left + 1, width);
  const int bottom = inside(std::ceil(roi.top + roi.height), top + 1, height);
  return {left, top, right - left, bottom - top};
}

/// Drawn within the part of the image that matters.
SampleGeometry draw_within(const TransformPlan& plan, const RegionOfInterest& roi, int width, int height,
                           core::Rng& rng, const CropView& view = {}) {
  const Region part = pixels_of(roi, width, height);
  SampleGeometry geometry = draw_geometry(plan, part.width, part.height, rng, view);
  geometry.left += part.left;
  geometry.top += part.top;
  return geometry;
}

}  // namespace

std::string SampleReader::read_into(int64_t sample, int64_t epoch, uint32_t round, uint8_t* row, float* targets,
                                    StageTimes& times) {
  const core::TraceScope trace("sample", sample);
  const SampleKey key{seed_, static_cast<uint64_t>(epoch),
                      static_cast<uint64_t>(sample) | static_cast<uint64_t>(round) << 32};
  if (stored_) {
    SampleGeometry geometry;
    write_recipe(sample, key, geometry, row);
    source_.targets(sample, targets);
    if (geometry.flip) plan_.target_rule.mirror(targets);
    return "";
  }
  if (!plan_.views.empty()) {
    source_.targets(sample, targets);
    return read_views(sample, key, row, times);
  }
  core::Rng rng(key.seed, core::RngPurpose::clip_frames, key.epoch, key.sample);
  const int64_t views = plan_.shape.views, available = videos_ == nullptr ? 1 : videos_->frame_count(sample) / views;
  choose_frames(plan_.clip, available, plan_.shape.images() / views, rng, frames_);
  drawn_.assign(views > 1 ? frames_.size() : 0, {});
  const auto image_bytes = static_cast<size_t>(plan_.shape.image_bytes());
  uint8_t* const whole_row = row;
  SampleGeometry geometry;
  for (size_t k = 0; k < frames_.size() * static_cast<size_t>(views); ++k, row += image_bytes) {
    const size_t i = k % frames_.size();
    if (i > 0 && frames_[i] == frames_[i - 1]) {  // of a short video
      const StageTimer timer("write", times.write);
      std::memcpy(row, row - image_bytes, image_bytes);
      continue;
    }
    follows_partner_ = k >= frames_.size();
    partner_ = views > 1 ? &drawn_[i] : nullptr;
    const int64_t frame = frames_[i] + (follows_partner_ ? available : 0);
    std::string reason = read_image(sample, frame, key, geometry, row, times);
    if (reason.empty()) continue;
    return videos_ == nullptr ? reason : core::printable(videos_->frame_name(sample, frame)) + ": " + reason;
  }
  if (plan_.masks.is_active()) {
    const StageTimer timer("augment", times.augment);
    mask_spectrogram(plan_.masks, key, plan_.shape, whole_row);
  }
  source_.targets(sample, targets);
  if (geometry.flip) plan_.target_rule.mirror(targets);
  return "";
}

std::string SampleReader::read_views(int64_t sample, const SampleKey& key, uint8_t* row, StageTimes& times) {
  for (const CropView& view : plan_.views) {
    view_ = view;
    SampleGeometry geometry;
    if (std::string reason = read_image(sample, 0, key, geometry, row, times); !reason.empty()) return reason;
    row += int64_t{plan_.out_height()} * plan_.out_width() * plan_.channels();
  }
  return "";
}

SampleGeometry SampleReader::part_of(const RegionOfInterest& roi, int width, int height, core::Rng& rng) {
  if (follows_partner_) return same_part(partner_->geometry, partner_->width, partner_->height, width, height);
  const SampleGeometry geometry = draw_within(plan_, roi, width, height, rng, view_);
  if (partner_ != nullptr) *partner_ = {geometry, width, height};
  return geometry;
}

std::string SampleReader::read_content(int64_t sample, int64_t frame, const SampleKey& key, SampleContent& content) {
  if (videos_ != nullptr) return videos_->read_frame(sample, frame, encoded_, content);
  if (excerpts_ == nullptr || !plan_.training) return source_.read(sample, encoded_, content);
  core::Rng rng(key.seed, core::RngPurpose::excerpt, key.epoch, key.sample);
  return excerpts_->read_excerpt(sample, rng.uniform(), encoded_, content);
}

std::string SampleReader::read_image(int64_t sample, int64_t frame, const SampleKey& key, SampleGeometry& geometry,
                                     uint8_t* row, StageTimes& times) {
  SampleContent content;
  {
    const StageTimer timer("read", times.read);
    std::string cause = read_content(sample, frame, key, content);
    if (!cause.empty() && !(content.is_rest && limits_.repair)) return cause;
    if (!cause.empty()) note_repair(cause);
  }
  times.read -= content.decode_nanoseconds;
  times.decode += content.decode_nanoseconds;
  if (content.element != Element::uint8 || plan_.shape.element != Element::uint8) {
    return copy_numbers(content, row, times);
  }
  core::Rng rng(key.seed, core::RngPurpose::augment, key.epoch, key.sample);
  if (!content.is_pixels()) {
    try {
      std::string reason = write_encoded(content, source_.region(sample), rng, geometry, row, times);
      if (!reason.empty()) return reason;
    } catch (const core::Error& error) {
      throw core::Error(error.kind(), core::printable(source_.name(sample)) + ": " + error.what(), error.hint());
    }
  } else {
    write_pixels(content, source_.region(sample), rng, geometry, row, times);
  }
  if (plan_.augment.is_active()) {
    const StageTimer timer("augment", times.augment);
    const PixelImage image{row, plan_.out_height(), plan_.out_width(), plan_.channels()};
    augment(plan_.augment, key, image, augment_scratch_);
  }
  return "";
}

/// The draws are those of write_pixels().
void SampleReader::write_recipe(int64_t sample, const SampleKey& key, SampleGeometry& geometry, uint8_t* row) const {
  core::Rng rng(key.seed, core::RngPurpose::augment, key.epoch, key.sample);
  geometry = draw_within(plan_, {}, stored_->width, stored_->height, rng);
  SampleRecipe recipe;
  recipe.sample = static_cast<int32_t>(sample);
  recipe.top = geometry.top + geometry.crop_top + stored_->border;
  recipe.left = geometry.left + geometry.crop_left + stored_->border;
  recipe.flip = geometry.flip ? 1 : 0;
  const int last_top = stored_->height + 2 * stored_->border - plan_.out_height();
  const int last_left = stored_->width + 2 * stored_->border - plan_.out_width();
  if (!geometry.keeps_size() || recipe.top < 0 || recipe.left < 0 || recipe.top > last_top || recipe.left > last_left) {
    throw core::Error(core::ErrorKind::bug, "a window was drawn that stored pixels do not hold");
  }
  std::memcpy(row, &recipe, sizeof recipe);
}

/// Numbers that are not bytes are not changed.
std::string SampleReader::copy_numbers(const SampleContent& content, uint8_t* row, StageTimes& times) const {
  const SampleShape& shape = plan_.shape;
  if (content.height != shape.height || content.width != shape.width || content.channels != shape.channels ||
      content.element != shape.element) {
    return core::format("is {} x {} x {} of {}, but {} x {} x {} of {} is expected", content.height, content.width,
                        content.channels, element_name(content.element), shape.height, shape.width, shape.channels,
                        element_name(shape.element));
  }
  const StageTimer timer("write", times.write);
  std::memcpy(row, content.bytes, static_cast<size_t>(shape.image_bytes()));
  return "";
}

std::string SampleReader::write_encoded(const SampleContent& content, const RegionOfInterest& roi, core::Rng& rng,
                                        SampleGeometry& geometry, uint8_t* row, StageTimes& times) {
  SampleGeometry within;  // the decoded region
  {
    const StageTimer timer("decode", times.decode);
    ImageHeader header;
    std::string reason = read_header(content.bytes, content.size, limits_, header);
    if (!reason.empty()) return reason;
    geometry = within = part_of(roi, header.width, header.height, rng);
    Region region{geometry.left, geometry.top, geometry.width, geometry.height};
    if (!geometry.keeps_size() && can_decode_rows(header, region)) {
      reason = write_as_decoded(content, geometry, row, times);
      release_scratch(content.size);
      return reason;
    }
    reason = decode_region(content.bytes, content.size, plan_.channels(), limits_, header, region, image_);
    if (!reason.empty()) return reason;
    within.left -= region.left;
    within.top -= region.top;
  }
  transform_image(image_.pixels.data(), image_.height, image_.width, within, row, times);
  release_scratch(content.size);
  return "";
}

std::string SampleReader::write_as_decoded(const SampleContent& content, const SampleGeometry& geometry, uint8_t* row,
                                           StageTimes& times) {
  ResizedRows rows(resample_task(plan_, geometry), geometry.left, geometry.top, scratch_.resample, band_,
                   filled_part(plan_, geometry, row));
  std::string reason = decode_rows(content.bytes, content.size, plan_.channels(), limits_, rows.needed(), rows);
  times.resize += rows.resize_nanoseconds();
  times.decode -= rows.resize_nanoseconds();
  return reason;
}

/// The memory of a worker does then not grow with the number of workers times the largest image.
void SampleReader::release_scratch(uint64_t encoded_bytes) {
  constexpr size_t kUsualFile = 128 << 10;  // bytes; filled with zeros when it is new
  const int64_t pixels = int64_t{image_.height} * image_.width * image_.channels;
  give_back(image_.pixels, static_cast<size_t>(pixels));
  if (encoded_.capacity() > kUsualFile) give_back(encoded_, encoded_bytes);
}

void SampleReader::transform_image(const uint8_t* pixels, int height, int width, const SampleGeometry& geometry,
                                   uint8_t* row, StageTimes& times) {
  const bool keeps = geometry.keeps_size();
  const StageTimer timer(keeps ? "write" : "resize", keeps ? times.write : times.resize);
  transform_into(pixels, height, width, plan_, geometry, scratch_, row);
}

void SampleReader::write_pixels(const SampleContent& content, const RegionOfInterest& roi, core::Rng& rng,
                                SampleGeometry& geometry, uint8_t* row, StageTimes& times) {
  const uint8_t* pixels = content.bytes;
  if (content.channels != plan_.channels()) {
    const StageTimer timer("decode", times.decode);
    convert_channels(pixels, int64_t{content.height} * content.width, content.channels, plan_.channels(), converted_);
    pixels = converted_.data();
  }
  geometry = part_of(roi, content.width, content.height, rng);
  transform_image(pixels, content.height, content.width, geometry, row, times);
}

}  // namespace stoker::data
