// SPDX-License-Identifier: Apache-2.0
#include "data/probe/probe_sizes.h"

#include <c10/util/Half.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/format.h"
#include "core/system/stop_signal.h"
#include "data/image/decode.h"
#include "data/storage/tree_walk.h"

namespace stoker::data {
namespace {

int64_t median_of(std::vector<int64_t> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// "" or why sample `index` has no readable header.
std::string probe_header(const Source& source, int64_t index, const DecodeLimits& limits, std::vector<uint8_t>& buffer,
                         ImageHeader& header) {
  SampleContent content;
  if (std::string cause = source.read(index, buffer, content); !cause.empty()) return cause;
  if (!content.is_pixels()) return read_header(content.bytes, content.size, limits, header);
  header.width = content.width;
  header.height = content.height;
  header.channels = content.channels;
  return "";
}

}  // namespace

SizeProbe probe_sizes(const Source& source, double max_image_megapixels) {
  constexpr int64_t kProbes = 100;
  DecodeLimits limits;
  limits.max_megapixels = max_image_megapixels;
  const int64_t probes = std::min(kProbes, source.size());
  std::vector<uint8_t> buffer;
  std::vector<int64_t> heights, widths;
  int64_t gray = 0;
  bool has_wide = false;
  std::string first_problem, missing;
  for (int64_t i = 0; i < probes; ++i) {
    core::throw_if_stopped();
    const int64_t index = i * source.size() / probes;
    ImageHeader header;
    const std::string reason = probe_header(source, index, limits, buffer, header);
    if (!reason.empty()) {
      if (!first_problem.empty()) continue;
      const std::string name = source.name(index);
      first_problem = core::printable(name) + ": " + reason;
      if (stamp_of(name).size >= 0 || name.find('#') != std::string::npos) continue;  // it is there, or in an archive
      if (const std::string near = nearest_file(name); !near.empty()) missing = "; there is " + core::printable(near);
      continue;
    }
    heights.push_back(header.height);
    widths.push_back(header.width);
    gray += header.channels == 1;
    has_wide = has_wide || header.bits > 8;
  }
  if (heights.empty()) {
    throw core::Error(
        core::ErrorKind::data,
        core::format("none of {} images that were looked at can be read; the first is {}{}", probes, first_problem,
                     missing),
        missing.empty() ? kImagesRead
                        : "the list and the files must agree letter by letter, in upper and lower case; where several "
                          "files are one image, as ID_red.png and ID_green.png, write them as one");
  }
  const bool mostly_gray = 2 * gray > static_cast<int64_t>(heights.size());
  return {mostly_gray ? 1 : 3, median_of(heights), median_of(widths), has_wide};
}

RangeProbe probe_range(const Source& source, double max_image_megapixels) {
  constexpr int64_t kProbes = 100, kNumbersOfImage = 20'000;
  constexpr double kNarrow = 1.0 / 16;
  if (source.fixed_shape().height > 0 || source.frames() != nullptr)
    return {};  // numbers as they are; frames of videos
  RangeProbe probe;
  SeenValues seen;
  DecodeLimits limits;
  limits.max_megapixels = max_image_megapixels;
  limits.seen = &seen;
  const int64_t probes = std::min(kProbes, source.size());
  std::vector<uint8_t> buffer;
  ImageBuffer image;
  for (int64_t i = 0; i < probes; ++i) {
    core::throw_if_stopped();
    SampleContent content;
    ImageHeader header;
    if (!source.read(i * source.size() / probes, buffer, content).empty() || content.is_pixels()) continue;
    if (!read_header(content.bytes, content.size, limits, header).empty() || header.bits <= 8) continue;
    const int64_t numbers = int64_t{header.width} * header.height * header.channels;
    seen.every = static_cast<uint64_t>(numbers / kNumbersOfImage + 1) | 1;  // odd: no channel is left out
    probe.images += decode_image(content.bytes, content.size, 3, limits, image).empty();
  }
  std::vector<double>& values = seen.values;
  values.erase(std::remove_if(values.begin(), values.end(), [](double value) { return !std::isfinite(value); }),
               values.end());
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto last = static_cast<double>(values.size() - 1);
  probe.low = values[static_cast<size_t>(std::floor(0.001 * last))];
  probe.high = values[static_cast<size_t>(std::ceil(0.999 * last))];
  probe.is_narrow = probe.high > probe.low && (probe.high - probe.low < kNarrow * (seen.high - seen.low) ||
                                               probe.low < seen.low || probe.high > seen.high);
  return probe;
}

namespace {

double number_at(const uint8_t* bytes, Element element, int64_t index) {
  if (element == Element::uint8) return bytes[index] / 255.0;
  if (element == Element::float16) {
    c10::Half value;
    std::memcpy(&value, bytes + index * 2, sizeof value);
    return static_cast<float>(value);
  }
  float value = 0;
  std::memcpy(&value, bytes + index * 4, sizeof value);
  return value;
}

/// Sums of one channel, as differences from its first number, so that a mean far from 0 costs no digits.
struct ChannelSums {
  bool has_first = false;
  double first = 0, sum = 0, squares = 0;

  void add(double value) {
    if (!has_first) first = value;
    has_first = true;
    const double difference = value - first;
    sum += difference;
    squares += difference * difference;
  }
};

}  // namespace

InputStatistics measure_inputs(const Source& source) {
  constexpr int64_t kPlaces = 100, kNeighbours = 20;
  InputStatistics statistics;
  const SampleShape shape = source.fixed_shape();
  const bool has_usual_values = shape.element == Element::uint8 && (shape.channels == 1 || shape.channels == 3);
  if (shape.height == 0 || has_usual_values) return statistics;
  std::vector<ChannelSums> sums(static_cast<size_t>(shape.channels));
  std::vector<uint8_t> buffer;
  const int64_t numbers = shape.height * shape.width * shape.channels;
  const int64_t places = std::min(kPlaces, (source.size() + kNeighbours - 1) / kNeighbours);
  for (int64_t place = 0; place < places; ++place) {
    core::throw_if_stopped();
    const int64_t first = place * source.size() / places, end = (place + 1) * source.size() / places;
    for (int64_t index = first; index < std::min(end, first + kNeighbours); ++index) {
      SampleContent content;
      if (!source.read(index, buffer, content).empty()) continue;  // the loader decides about bad samples
      for (int64_t i = 0; i < numbers; ++i) {
        const double value = number_at(content.bytes, shape.element, i);
        if (!std::isfinite(value)) {
          throw core::Error(core::ErrorKind::data,
                            core::format("{} holds {}", core::printable(source.name(index)), value),
                            "replace what is not finite, or leave these samples out of the file");
        }
        sums[static_cast<size_t>(i % shape.channels)].add(value);
      }
      ++statistics.samples;
    }
  }
  const auto count = static_cast<double>(statistics.samples) * static_cast<double>(shape.height * shape.width);
  for (const ChannelSums& channel : sums) {
    const double mean = count > 0 ? channel.sum / count : 0;
    statistics.mean.push_back(channel.first + mean);
    statistics.deviation.push_back(count > 0 ? std::sqrt(std::max(0.0, channel.squares / count - mean * mean)) : 0);
  }
  return statistics;
}

Picture picture_of(const uint8_t* image, const SampleShape& shape, int64_t longest_side) {
  const int64_t channels = shape.channels >= 3 ? 3 : 1, area = shape.height * shape.width;
  const int64_t side = std::max(shape.height, shape.width);
  const bool is_picture = shape.element == Element::uint8 && shape.channels == channels;
  const auto value_at = [&](int64_t pixel, int64_t channel) {
    return number_at(image, shape.element, pixel * shape.channels + channel);
  };
  double low = 0, high = is_picture ? 1 : 0;
  bool has_first = is_picture;
  for (int64_t i = 0; !is_picture && i < area * channels; ++i) {
    const double value = value_at(i / channels, i % channels);
    if (!std::isfinite(value)) continue;
    low = has_first ? std::min(low, value) : value;
    high = has_first ? std::max(high, value) : value;
    has_first = true;
  }
  const double scale = high > low ? 255 / (high - low) : 0;
  Picture picture;
  const int64_t shrunk = longest_side > 0 && side > longest_side ? longest_side : side;
  picture.height = std::max<int64_t>(1, shape.height * shrunk / side);
  picture.width = std::max<int64_t>(1, shape.width * shrunk / side);
  picture.channels = channels;
  for (int64_t y = 0; y < picture.height; ++y) {
    const int64_t top = y * shape.height / picture.height, bottom = (y + 1) * shape.height / picture.height;
    for (int64_t x = 0; x < picture.width; ++x) {
      const int64_t left = x * shape.width / picture.width, right = (x + 1) * shape.width / picture.width;
      for (int64_t c = 0; c < channels; ++c) {
        double sum = 0;
        for (int64_t row = top; row < bottom; ++row) {
          for (int64_t column = left; column < right; ++column) {
            const double value = value_at(row * shape.width + column, c);
            sum += std::isfinite(value) ? (value - low) * scale : 0;
          }
        }
        const double mean = sum / static_cast<double>((bottom - top) * (right - left));
        picture.pixels.push_back(static_cast<uint8_t>(std::lround(std::clamp(mean, 0.0, 255.0))));
      }
    }
  }
  return picture;
}

}  // namespace stoker::data
