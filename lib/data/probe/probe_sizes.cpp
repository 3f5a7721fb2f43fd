// SPDX-License-Identifier: Apache-2.0
#include "data/probe/probe_sizes.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/format.h"
#include "core/system/stop_signal.h"
#include "data/image/decode.h"

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
  std::string first_problem;
  for (int64_t i = 0; i < probes; ++i) {
    core::throw_if_stopped();
    const int64_t index = i * source.size() / probes;
    ImageHeader header;
    const std::string reason = probe_header(source, index, limits, buffer, header);
    if (!reason.empty()) {
      if (first_problem.empty()) first_problem = core::printable(source.name(index)) + ": " + reason;
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
        core::format("none of {} images that were looked at can be read; the first is {}", probes, first_problem),
        "images are JPEG, PNG, BMP, WebP, TIFF, GIF, PNM or JPEG 2000 files");
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

}  // namespace stoker::data
