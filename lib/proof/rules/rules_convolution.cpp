// SPDX-License-Identifier: Apache-2.0
// Convolutions of one to three dimensions with stride, padding, dilation and groups, transposed or not, and their
// gradients: as torch.nn.functional.conv2d defines them.
#include <array>
#include <cmath>

#include "proof/rules/rules.h"

namespace stoker::proof {
namespace {

using torch::jit::Stack;
using Sides = std::array<int64_t, 3>;  // depth, height, width

/// A tensor [a, b, sides...] as one with three sides, of which missing ones are 1.
struct Grid {
  explicit Grid(const at::Tensor& tensor) : numbers(tensor) {
    first = numbers.size(0);
    second = numbers.size(1);
    strides[0] = numbers.stride(0);
    strides[1] = numbers.stride(1);
    const int64_t missing = 5 - numbers.dim();
    for (int64_t i = 0; i < 3; ++i) {
      sides[static_cast<size_t>(i)] = i < missing ? 1 : numbers.size(i + 2 - missing);
      strides[static_cast<size_t>(i + 2)] = i < missing ? 0 : numbers.stride(i + 2 - missing);
    }
  }
  double at(int64_t a, int64_t b, const Sides& place) const {
    return numbers.data()[a * strides[0] + b * strides[1] + place[0] * strides[2] + place[1] * strides[3] +
                          place[2] * strides[4]];
  }

  Numbers numbers;
  int64_t first, second;
  Sides sides{};
  std::array<int64_t, 5> strides{};
};

/// The place of an element [a, b, sides...] as three sides.
Sides place_of(const int64_t* index, int64_t dims) {
  Sides place{};
  for (int64_t i = 0; i < dims - 2; ++i) place[static_cast<size_t>(3 - (dims - 2) + i)] = index[2 + i];
  return place;
}

template <typename Work>
void for_each_place(const Sides& sides, const Work& work) {
  Sides place{};
  for (place[0] = 0; place[0] < sides[0]; ++place[0])
    for (place[1] = 0; place[1] < sides[1]; ++place[1])
      for (place[2] = 0; place[2] < sides[2]; ++place[2]) work(place);
}

/// The products between `wide` [n, C, sides], `weight` [O, C / groups, kernel] and `narrow` [n, O, sides]: the input
/// and the output of a convolution, the other way round of a transposed one.
struct Geometry {
  Sides stride{1, 1, 1}, padding{}, dilation{1, 1, 1};
  int64_t groups = 1;

  Geometry(const c10::IValue& strides, const c10::IValue& paddings, const c10::IValue& dilations, int64_t group_count,
           int64_t dims)
      : groups(group_count) {
    const auto fill = [dims](Sides& sides, const std::vector<int64_t>& given) {
      for (int64_t i = 0; i < dims; ++i) {
        sides[static_cast<size_t>(3 - dims + i)] = given.size() == 1 ? given[0] : given[static_cast<size_t>(i)];
      }
    };
    fill(stride, strides.toIntVector());
    fill(padding, paddings.toIntVector());
    fill(dilation, dilations.toIntVector());
  }

  /// The place in `wide` that the weight at `kernel` connects with `narrow`; false: outside.
  bool wide_place(const Sides& narrow, const Sides& kernel, const Sides& limits, Sides& wide) const {
    for (size_t i = 0; i < 3; ++i) {
      wide[i] = narrow[i] * stride[i] - padding[i] + kernel[i] * dilation[i];
      if (wide[i] < 0 || wide[i] >= limits[i]) return false;
    }
    return true;
  }
  bool narrow_place(const Sides& wide, const Sides& kernel, const Sides& limits, Sides& narrow) const {
    for (size_t i = 0; i < 3; ++i) {
      const int64_t at = wide[i] + padding[i] - kernel[i] * dilation[i];
      if (at < 0 || at % stride[i] != 0) return false;
      narrow[i] = at / stride[i];
      if (narrow[i] >= limits[i]) return false;
    }
    return true;
  }
};

/// An element of `narrow`.
Expected narrow_at(const Geometry& geometry, const Grid& wide, const Grid& weight, int64_t n, int64_t o,
                   const Sides& place) {
  Expected sum;
  const int64_t channels = weight.second, begin = o / (weight.first / geometry.groups) * channels;
  for_each_place(weight.sides, [&](const Sides& kernel) {
    Sides at;
    if (!geometry.wide_place(place, kernel, wide.sides, at)) return;
    for (int64_t c = 0; c < channels; ++c) sum.add(wide.at(n, begin + c, at) * weight.at(o, c, kernel));
  });
  return sum;
}

/// An element of `wide`.
Expected wide_at(const Geometry& geometry, const Grid& narrow, const Grid& weight, int64_t n, int64_t channel,
                 const Sides& place) {
  Expected sum;
  const int64_t outputs = weight.first / geometry.groups, group = channel / weight.second;
  for_each_place(weight.sides, [&](const Sides& kernel) {
    Sides at;
    if (!geometry.narrow_place(place, kernel, narrow.sides, at)) return;
    for (int64_t i = 0; i < outputs; ++i) {
      const int64_t o = group * outputs + i;
      sum.add(narrow.at(n, o, at) * weight.at(o, channel % weight.second, kernel));
    }
  });
  return sum;
}

/// An element of the gradient of `weight`, whose sizes are [O, C / groups, kernel].
Expected weight_at(const Geometry& geometry, const Grid& wide, const Grid& narrow, int64_t o, int64_t c,
                   int64_t channels, const Sides& kernel) {
  Expected sum;
  const int64_t channel = o / (narrow.second / geometry.groups) * channels + c;
  for (int64_t n = 0; n < wide.first; ++n) {
    for_each_place(narrow.sides, [&](const Sides& place) {
      Sides at;
      if (geometry.wide_place(place, kernel, wide.sides, at)) sum.add(wide.at(n, channel, at) * narrow.at(n, o, place));
    });
  }
  return sum;
}

int64_t area(const Sides& sides) { return sides[0] * sides[1] * sides[2]; }

// aten::convolution(input, weight, bias?, stride, padding, dilation, transposed, output_padding, groups)
void compare_forward(const Stack& arguments, const Stack& results, Comparison& comparison) {
  const at::Tensor output = results.at(0).toTensor();
  const int64_t dims = output.dim();
  const bool transposed = arguments.at(6).toBool();
  const Geometry geometry(arguments.at(3), arguments.at(4), arguments.at(5), arguments.at(8).toInt(), dims - 2);
  const Grid input(arguments.at(0).toTensor()), weight(arguments.at(1).toTensor());
  const bool has_bias = arguments.at(2).isTensor() && arguments.at(2).toTensor().defined();
  const Numbers bias(has_bias ? arguments.at(2).toTensor() : at::zeros({1}));
  const int64_t terms = area(weight.sides) * (transposed ? weight.first / geometry.groups : weight.second);
  comparison.compare("output", output, terms, [&](const int64_t* index) {
    const Sides place = place_of(index, dims);
    Expected sum = transposed ? wide_at(geometry, input, weight, index[0], index[1], place)
                              : narrow_at(geometry, input, weight, index[0], index[1], place);
    if (has_bias) {
      sum.intermediate = std::abs(sum.value);  // it may be rounded before the bias is added
      sum.add(bias.at(index + 1));
    }
    sum.terms = static_cast<double>(terms);
    return sum;
  });
}

// aten::convolution_backward(grad_output, input, weight, bias_sizes?, stride, padding, dilation, transposed,
//                            output_padding, groups, output_mask) -> gradients of input, weight, bias
void compare_backward(const Stack& arguments, const Stack& results, Comparison& comparison) {
  const int64_t dims = arguments.at(1).toTensor().dim();
  const bool transposed = arguments.at(7).toBool();
  const Geometry geometry(arguments.at(4), arguments.at(5), arguments.at(6), arguments.at(9).toInt(), dims - 2);
  const Grid gradient(arguments.at(0).toTensor()), input(arguments.at(1).toTensor()),
      weight(arguments.at(2).toTensor());
  const auto mask = arguments.at(10).toBoolList();
  const Grid &wide = transposed ? gradient : input, &narrow = transposed ? input : gradient;
  if (mask.get(0)) {
    const int64_t terms = area(weight.sides) * (transposed ? weight.second : weight.first / geometry.groups);
    comparison.compare("gradient of the input", results.at(0).toTensor(), terms, [&](const int64_t* index) {
      const Sides place = place_of(index, dims);
      Expected sum = transposed ? narrow_at(geometry, wide, weight, index[0], index[1], place)
                                : wide_at(geometry, narrow, weight, index[0], index[1], place);
      sum.terms = static_cast<double>(terms);
      return sum;
    });
  }
  if (mask.get(1)) {
    const int64_t terms = wide.first * area(narrow.sides);
    comparison.compare("gradient of the weight", results.at(1).toTensor(), terms, [&](const int64_t* index) {
      Expected sum = weight_at(geometry, wide, narrow, index[0], index[1], weight.second, place_of(index, dims));
      sum.terms = static_cast<double>(terms);
      return sum;
    });
  }
  if (mask.get(2)) {
    const int64_t terms = gradient.first * area(gradient.sides);
    comparison.compare("gradient of the bias", results.at(2).toTensor(), terms, [&](const int64_t* index) {
      Expected sum;
      for (int64_t n = 0; n < gradient.first; ++n) {
        for_each_place(gradient.sides, [&](const Sides& place) { sum.add(gradient.at(n, index[0], place)); });
      }
      sum.terms = static_cast<double>(terms);
      return sum;
    });
  }
}

}  // namespace

std::vector<Rule> convolution_rules() {
  return {{"aten::convolution", nullptr, compare_forward}, {"aten::convolution_backward", nullptr, compare_backward}};
}

}  // namespace stoker::proof
