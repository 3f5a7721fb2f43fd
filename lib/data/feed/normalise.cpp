// SPDX-License-Identifier: Apache-2.0
#include "data/feed/normalise.h"

#include "core/error.h"
#include "core/format.h"

namespace stoker::data {
namespace {

std::string values_text(std::size_t count) { return core::format("{} value{}", count, count == 1 ? "" : "s"); }

void require_values(std::size_t values, int64_t channels) {
  if (static_cast<int64_t>(values) == channels) return;
  throw core::Error(core::ErrorKind::config,
                    core::format("mean and std have {}, but the samples have {} channel{}", values_text(values),
                                 channels, channels == 1 ? "" : "s"),
                    "give --mean and --std one value per channel, or leave both out");
}

void require_same_size(const std::vector<double>& mean, const std::vector<double>& std) {
  if (mean.size() == std.size()) return;
  throw core::Error(core::ErrorKind::config,
                    core::format("mean has {}, but std has {}", values_text(mean.size()), values_text(std.size())),
                    "give --mean and --std one value per channel, or leave both out");
}

template <int kChannels>
void normalise_interleaved(const uint8_t* pixels, int64_t count, const NormalTable& table, float* out) {
  const float* lookup[kChannels];
  for (int c = 0; c < kChannels; ++c) lookup[c] = table[static_cast<std::size_t>(c)].data();
  for (int64_t i = 0; i < count; ++i, pixels += kChannels, out += kChannels) {
    for (int c = 0; c < kChannels; ++c) out[c] = lookup[c][pixels[c]];
  }
}

/// One pass over the pixels writes all planes of an image.
template <int kChannels>
void normalise_planes(const uint8_t* pixels, int64_t area, const NormalTable& table, float* out) {
  const float* lookup[kChannels];
  float* plane[kChannels];
  for (int c = 0; c < kChannels; ++c) {
    lookup[c] = table[static_cast<std::size_t>(c)].data();
    plane[c] = out + c * area;
  }
  for (int64_t i = 0; i < area; ++i, pixels += kChannels) {
    for (int c = 0; c < kChannels; ++c) plane[c][i] = lookup[c][pixels[c]];
  }
}

/// Normalises any number of channels, one after another.
void normalise_any(const uint8_t* pixels, int64_t images, int64_t area, int64_t channels, const NormalTable& table,
                   bool channels_last, float* out) {
  const int64_t pixel_step = channels_last ? channels : 1, channel_step = channels_last ? 1 : area;
  for (int64_t image = 0; image < images; ++image, pixels += area * channels, out += area * channels) {
    for (int64_t c = 0; c < channels; ++c) {
      const float* const lookup = table[static_cast<std::size_t>(c)].data();
      float* const to = out + c * channel_step;
      for (int64_t i = 0; i < area; ++i) to[i * pixel_step] = lookup[pixels[i * channels + c]];
    }
  }
}

}  // namespace

void require_per_channel(const std::vector<double>& mean, const std::vector<double>& std, int64_t channels) {
  require_same_size(mean, std);
  require_values(mean.size(), channels);
}

NormalTable make_normal_table(const std::vector<double>& mean, const std::vector<double>& std) {
  require_same_size(mean, std);
  NormalTable table(mean.size());
  for (std::size_t c = 0; c < table.size(); ++c) {
    for (std::size_t u = 0; u < 256; ++u) {
      table[c][u] = static_cast<float>((static_cast<double>(u) / 255 - mean[c]) / std[c]);
    }
  }
  return table;
}

void normalise(const uint8_t* pixels, int64_t images, int64_t area, int64_t channels, const NormalTable& table,
               bool channels_last, float* out) {
  require_values(table.size(), channels);
  if (channels != 1 && channels != 3) return normalise_any(pixels, images, area, channels, table, channels_last, out);
  if (channels == 1) return normalise_interleaved<1>(pixels, images * area, table, out);
  if (channels_last) return normalise_interleaved<3>(pixels, images * area, table, out);
  for (int64_t i = 0; i < images; ++i) {
    normalise_planes<3>(pixels + i * area * channels, area, table, out + i * area * channels);
  }
}

NormalLine make_normal_line(const std::vector<double>& mean, const std::vector<double>& std) {
  require_same_size(mean, std);
  NormalLine line;
  for (std::size_t c = 0; c < mean.size(); ++c) {
    line.scale.push_back(static_cast<float>(1 / std[c]));
    line.offset.push_back(static_cast<float>(-mean[c] / std[c]));
  }
  return line;
}

void normalise(const float* pixels, int64_t images, int64_t area, int64_t channels, const NormalLine& line,
               bool channels_last, float* out) {
  require_values(line.scale.size(), channels);
  const int64_t pixel_step = channels_last ? channels : 1, channel_step = channels_last ? 1 : area;
  for (int64_t image = 0; image < images; ++image, pixels += area * channels, out += area * channels) {
    for (int64_t c = 0; c < channels; ++c) {
      const float scale = line.scale[static_cast<std::size_t>(c)], offset = line.offset[static_cast<std::size_t>(c)];
      float* const to = out + c * channel_step;
      for (int64_t i = 0; i < area; ++i) to[i * pixel_step] = pixels[i * channels + c] * scale + offset;
    }
  }
}

}  // namespace stoker::data
