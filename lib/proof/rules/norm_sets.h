// SPDX-License-Identifier: Apache-2.0
// The elements that a norm takes together, and sums over them in double precision: those of a channel, of an image, of
// some channels of an image.
#pragma once

#include <ATen/Parallel.h>
#include <torch/types.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "proof/rules/comparison.h"

namespace stoker::proof {

using NormPlace = std::array<int64_t, 3>;  // image, channel, pixel

/// Which elements are normalized together. Any input is seen as [images, channels, pixels]: the rows of layer norm are
/// images of one pixel.
struct NormSets {
  std::vector<int64_t> sizes;
  size_t first_channel_dim = 1, first_pixel_dim = 2;
  int64_t images = 1, channels = 1, pixels = 1;
  int64_t sets_per_image = 0;  ///< 0: the images share their sets
  std::vector<int64_t> set_of_channel;

  /// `set_count` for each image; 0: each channel is a set, of all images.
  NormSets(const at::Tensor& input, int64_t channel_dim, int64_t pixel_dim, int64_t set_count)
      : sizes(input.sizes().vec()),
        first_channel_dim(static_cast<size_t>(channel_dim)),
        first_pixel_dim(static_cast<size_t>(pixel_dim)),
        sets_per_image(set_count) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      (i < first_channel_dim ? images : i < first_pixel_dim ? channels : pixels) *= sizes[i];
    }
    const int64_t together = set_count == 0 ? 1 : std::max<int64_t>(1, channels / set_count);
    for (int64_t c = 0; c < channels; ++c) set_of_channel.push_back(c / together);
  }

  int64_t count() const { return sets_per_image == 0 ? channels : images * sets_per_image; }
  int64_t elements() const { return count() == 0 ? 0 : images * channels * pixels / count(); }
  size_t set_of(int64_t image, int64_t channel) const {
    return static_cast<size_t>(image * sets_per_image + set_of_channel[static_cast<size_t>(channel)]);
  }
  NormPlace place_of(const int64_t* index) const {
    return {flat(index, 0, first_channel_dim), flat(index, first_channel_dim, first_pixel_dim),
            flat(index, first_pixel_dim, sizes.size())};
  }
  /// Of an element of a result with one for each set: [channels], [images, sets] or [sizes of images..., 1...].
  size_t set_at(const int64_t* index) const {
    if (sets_per_image == 0) return static_cast<size_t>(index[0]);
    return static_cast<size_t>(flat(index, 0, first_channel_dim) * sets_per_image +
                               (sets_per_image == 1 ? 0 : index[first_channel_dim]));
  }
  /// The channel of an element of the weight, which has the channels' dimensions.
  size_t channel_at(const int64_t* index) const {
    int64_t number = 0;
    for (size_t i = first_channel_dim; i < first_pixel_dim; ++i) number = number * sizes[i] + *index++;
    return static_cast<size_t>(number);
  }
  Numbers numbers(const at::Tensor& tensor) const { return Numbers(tensor.reshape({images, channels, pixels})); }

  int64_t flat(const int64_t* index, size_t begin, size_t end) const {
    int64_t number = 0;
    for (size_t i = begin; i < end; ++i) number = number * sizes[i] + index[i];
    return number;
  }
};

constexpr int64_t kChannelBlock = 16;  // side by side in channels-last: a line of cache

/// Adds each element to the Sum of its set, or of its channel; without two threads at one Sum.
template <typename Sum, typename Add>
std::vector<Sum> norm_sums(const NormSets& sets, bool by_channel, const Add& add) {
  std::vector<Sum> sums(static_cast<size_t>(by_channel ? sets.channels : sets.count()));
  const auto visit = [&](int64_t image_begin, int64_t image_end, int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; block += kChannelBlock) {
      const int64_t stop = std::min(block + kChannelBlock, end);
      for (int64_t n = image_begin; n < image_end; ++n)
        for (int64_t i = 0; i < sets.pixels; ++i)
          for (int64_t c = block; c < stop; ++c) {
            add(sums[by_channel ? static_cast<size_t>(c) : sets.set_of(n, c)], NormPlace{n, c, i});
          }
    }
  };
  const int64_t blocks = (sets.channels + kChannelBlock - 1) / kChannelBlock;
  at::parallel_for(0, by_channel ? blocks : sets.images, 1, [&](int64_t begin, int64_t end) {
    if (!by_channel) return visit(begin, end, 0, sets.channels);
    visit(0, sets.images, begin * kChannelBlock, std::min(end * kChannelBlock, sets.channels));
  });
  return sums;
}

struct Moments {
  double mean = 0, inverse = 1;  ///< `inverse` deviation
  double power = 0, spread = 1;  ///< mean of the squares; variance + eps
};

inline std::vector<Moments> moments_of(const NormSets& sets, const Numbers& x, double eps) {
  struct Sums {
    double x = 0, squares = 0;
  };
  const auto sums = norm_sums<Sums>(sets, sets.sets_per_image == 0, [&](Sums& sum, const NormPlace& place) {
    const double value = x.at(place.data());
    sum.x += value;
    sum.squares += value * value;
  });
  const auto count = static_cast<double>(sets.elements());
  std::vector<Moments> moments;
  for (const Sums& sum : sums) {
    const double mean = sum.x / count, power = sum.squares / count;
    const double spread = std::max(0.0, power - mean * mean) + eps;
    moments.push_back({mean, 1 / std::sqrt(spread), power, spread});
  }
  return moments;
}

/// One number for each channel; `missing` where there are none.
inline std::vector<double> channel_values(const NormSets& sets, const at::Tensor& tensor, double missing) {
  std::vector<double> values(static_cast<size_t>(sets.channels), missing);
  if (!tensor.defined()) return values;
  const Numbers numbers(tensor.reshape({-1}));
  for (int64_t c = 0; c < sets.channels; ++c) values[static_cast<size_t>(c)] = numbers.at(&c);
  return values;
}

/// Of the gradient, and of its products with the normalized input.
struct GradientSums {
  Expected plain, product;
};

inline std::vector<GradientSums> gradient_sums(const NormSets& sets, const Numbers& dy, const Numbers& x,
                                               const std::vector<Moments>& moments,
                                               const std::vector<double>* weights) {
  return norm_sums<GradientSums>(sets, weights == nullptr, [&](GradientSums& sums, const NormPlace& place) {
    const Moments& moment = moments[sets.set_of(place[0], place[1])];
    const double g = dy.at(place.data()) * (weights ? (*weights)[static_cast<size_t>(place[1])] : 1);
    const double scaled = x.at(place.data()) * moment.inverse, mean = moment.mean * moment.inverse;
    sums.plain.add(g);
    sums.product.value += g * (scaled - mean);
    sums.product.squares += g * g * (scaled * scaled + mean * mean);  // some kernels take the mean off the sum
  });
}

}  // namespace stoker::proof
