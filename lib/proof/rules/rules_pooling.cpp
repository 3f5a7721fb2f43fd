// SPDX-License-Identifier: Apache-2.0
// Maxima and means of windows of a map, their gradients, and means over any dimensions. Maps are the last two
// dimensions.

#include <torch/types.h>
#include <torch/version.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "proof/rules/comparison.h"
#include "proof/rules/rules.h"

namespace stoker::proof {

// Windows of maps, the last two dimensions of a tensor: which places belong to which element of a pooling.

using Pair = std::array<int64_t, 2>;  // row, column

/// Maps [..., height, width].
struct Maps {
  explicit Maps(const at::Tensor& tensor)
      : numbers(tensor),
        rows(tensor.size(-2)),
        columns(tensor.size(-1)),
        row_stride(numbers.stride(tensor.dim() - 2)),
        column_stride(numbers.stride(tensor.dim() - 1)) {}

  /// The map of an element.
  const float* map(const int64_t* index) const {
    int64_t offset = 0;
    for (int64_t i = 0; i + 2 < numbers.dim(); ++i) offset += index[i] * numbers.stride(i);
    return numbers.data() + offset;
  }
  double at(const float* map, int64_t row, int64_t column) const {
    return map[row * row_stride + column * column_stride];
  }
  Pair place_of(const int64_t* index) const { return {index[numbers.dim() - 2], index[numbers.dim() - 1]}; }

  Numbers numbers;
  int64_t rows, columns, row_stride, column_stride;
};

/// Places along one side: begin, begin + step, ..., below end.
struct Steps {
  int64_t begin = 0, end = 0, step = 1;
};

template <typename Work>
void for_each_in(const std::array<Steps, 2>& window, const Work& work) {
  for (int64_t row = window[0].begin; row < window[0].end; row += window[0].step)
    for (int64_t column = window[1].begin; column < window[1].end; column += window[1].step) work(row, column);
}

/// Windows of `kernel` places, `stride` apart; those places of them that lie in a map.
struct Windows {
  Pair kernel{}, stride{}, padding{}, dilation{1, 1}, limits{};

  /// Dilated ones may have no place but in the padding.
  bool may_be_empty() const { return (dilation[0] > 1 || dilation[1] > 1) && (padding[0] > 0 || padding[1] > 0); }
  std::array<Steps, 2> of(const Pair& place) const {
    std::array<Steps, 2> window;
    for (size_t i = 0; i < 2; ++i) {
      int64_t begin = place[i] * stride[i] - padding[i];
      const int64_t end = std::min(begin + (kernel[i] - 1) * dilation[i] + 1, limits[i]);
      while (begin < 0) begin += dilation[i];
      window[i] = {begin, end, dilation[i]};
    }
    return window;
  }
  /// Windows, of `counts`, between the first and the last one that `place` may lie in.
  std::array<Steps, 2> around(const Pair& place, const Pair& counts) const {
    std::array<Steps, 2> windows;
    for (size_t i = 0; i < 2; ++i) {
      const int64_t last = place[i] + padding[i], first = last - (kernel[i] - 1) * dilation[i];
      windows[i] = {first <= 0 ? 0 : (first + stride[i] - 1) / stride[i], std::min(last / stride[i] + 1, counts[i]), 1};
    }
    return windows;
  }
};

/// The windows of a mean, and by what their sums are divided.
struct MeanWindows {
  Windows windows;
  bool counts_padding = true;
  int64_t divisor = 0;  ///< 0: the number of places

  double divisor_of(const Pair& place) const {
    if (divisor != 0) return static_cast<double>(divisor);
    int64_t count = 1;
    for (size_t i = 0; i < 2; ++i) {
      const int64_t begin = place[i] * windows.stride[i] - windows.padding[i], end = begin + windows.kernel[i];
      count *= counts_padding ? std::min(end, windows.limits[i] + windows.padding[i]) - begin
                              : std::min(end, windows.limits[i]) - std::max<int64_t>(begin, 0);
    }
    return static_cast<double>(count);
  }
};

/// The place of the first of the largest numbers in a window, row by row.
inline int64_t maximum_in(const std::array<Steps, 2>& window, const Maps& maps, const float* map) {
  int64_t best = -1;
  double largest = 0;
  for_each_in(window, [&](int64_t row, int64_t column) {
    const double value = maps.at(map, row, column);
    if (best >= 0 && value <= largest) return;
    best = row * maps.columns + column;
    largest = value;
  });
  return best;
}

namespace {

using torch::jit::Stack;

constexpr double kReducedStep = 0x1p-7;   // rounding to bfloat16, twice over
constexpr double kSquaresUnit = 0x1p-21;  // what a comparison allows for squares of 1: eight units of float32

Pair pair_of(const c10::IValue& value, const Pair& missing) {
  const auto given = value.toIntVector();
  if (given.empty()) return missing;
  return {given[0], given.size() == 1 ? given[0] : given[1]};
}

/// Sets what a sum in bfloat16 adds to the error, of which partial sums have these squares.
void allow_rounding(Expected& sum, const at::Tensor& result, double partial_squares) {
  const bool is_reduced = result.scalar_type() == at::kBFloat16 || result.scalar_type() == at::kHalf;
  const double unit = kReducedStep / kSquaresUnit;
  if (is_reduced) sum.squares += unit * unit * partial_squares / (sum.terms + 1);
}

/// `first`: where kernel_size is among the arguments; stride, padding and dilation follow.
Windows max_windows(const Stack& arguments, size_t first, const at::Tensor& input) {
  Windows windows;
  windows.kernel = pair_of(arguments.at(first), {1, 1});
  windows.stride = pair_of(arguments.at(first + 1), windows.kernel);
  windows.padding = pair_of(arguments.at(first + 2), {0, 0});
  windows.dilation = pair_of(arguments.at(first + 3), {1, 1});
  windows.limits = {input.size(-2), input.size(-1)};
  return windows;
}

// max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode) -> output, indices
void compare_maxima(const Stack& arguments, const Stack& results, Comparison& comparison) {
  const at::Tensor input = arguments.at(0).toTensor(), indices = results.at(1).toTensor();
  const Windows windows = max_windows(arguments, 1, input);
  if (windows.may_be_empty()) return;  // where LibTorch's releases differ
  const Maps x(input), found(indices);
  const auto terms = windows.kernel[0] * windows.kernel[1];
  const auto value_at = [&](const float* map, int64_t place) {
    return x.at(map, place / x.columns, place % x.columns);
  };
  const int64_t spatial = input.dim() - 2;
  const at::Tensor output = results.at(0).toTensor().to(at::kFloat);  // a maximum is not rounded
  const auto maximum = [&](const int64_t* index) {
    return Expected{value_at(x.map(index), maximum_in(windows.of(found.place_of(index)), x, x.map(index)))};
  };
  comparison.compare("output", output, terms, maximum, spatial);
  const auto place_of_maximum = [&](const int64_t* index) {
    const auto window = windows.of(found.place_of(index));
    const float* const map = x.map(index);
    const int64_t first = maximum_in(window, x, map);
    const auto got = static_cast<int64_t>(found.numbers.at(index));
    bool is_maximum = false;  // any of several equal numbers is right
    for_each_in(window, [&](int64_t row, int64_t column) {
      const int64_t place = row * x.columns + column;
      is_maximum = is_maximum || (place == got && value_at(map, place) == value_at(map, first));
    });
    return Expected{static_cast<double>(is_maximum ? got : first)};
  };
  comparison.compare("indices", indices, terms, place_of_maximum, spatial);
}

// max_pool2d_with_indices_backward(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices)
void prepare_maxima_gradient(Stack& arguments) {
  const at::Tensor input = arguments.at(1).toTensor(), indices = arguments.at(7).toTensor();
  const Windows windows = max_windows(arguments, 2, input);
  const at::Tensor rows = input.flatten(0, -3);  // [maps, height, width]
  const at::Tensor places = at::empty({rows.size(0), indices.size(-2), indices.size(-1)}, at::kLong);
  const Maps x(rows);
  int64_t* place = places.data_ptr<int64_t>();
  for (int64_t i = 0; i < places.size(0); ++i) {
    for_each_in({Steps{0, places.size(1)}, Steps{0, places.size(2)}}, [&](int64_t row, int64_t column) {
      *place++ = std::max<int64_t>(0, maximum_in(windows.of({row, column}), x, x.map(&i)));
    });
  }
  arguments.at(7).toTensor().copy_(places.view(indices.sizes()));
}

void compare_maxima_gradient(const Stack& arguments, const Stack& results, Comparison& comparison) {
  const at::Tensor input = arguments.at(1).toTensor(), result = results.at(0).toTensor();
  const Windows windows = max_windows(arguments, 2, input);
  const Maps gradient(arguments.at(0).toTensor()), indices(arguments.at(7).toTensor());
  const auto expect = [&](const int64_t* index) {
    const Pair place{index[input.dim() - 2], index[input.dim() - 1]};
    const auto wanted = static_cast<double>(place[0] * input.size(-1) + place[1]);
    const float *const map = gradient.map(index), *const places = indices.map(index);
    Expected sum;
    double partial_squares = 0;
    for_each_in(windows.around(place, {gradient.rows, gradient.columns}), [&](int64_t row, int64_t column) {
      if (indices.at(places, row, column) != wanted) return;
      sum.add(gradient.at(map, row, column));
      partial_squares += sum.value * sum.value;
    });
    allow_rounding(sum, result, partial_squares);
    return sum;
  };
  comparison.compare("gradient of the input", result, windows.kernel[0] * windows.kernel[1], expect, input.dim() - 2);
}

/// `first`: where kernel_size is; stride, padding, ceil_mode, count_include_pad and divisor_override follow.
MeanWindows mean_windows(const Stack& arguments, size_t first, const at::Tensor& input) {
  MeanWindows mean;
  mean.windows.kernel = pair_of(arguments.at(first), {1, 1});
  mean.windows.stride = pair_of(arguments.at(first + 1), mean.windows.kernel);
  mean.windows.padding = pair_of(arguments.at(first + 2), {0, 0});
  mean.windows.limits = {input.size(-2), input.size(-1)};
  mean.counts_padding = arguments.at(first + 4).toBool();
  if (arguments.at(first + 5).isInt()) mean.divisor = arguments.at(first + 5).toInt();
  return mean;
}

/// `window`: of an output's place; `divisor`: of its sum.
template <typename Window, typename Divisor>
void compare_means(const at::Tensor& input, const at::Tensor& result, int64_t terms, const Window& window,
                   const Divisor& divisor, Comparison& comparison) {
  const Maps x(input);
  const auto expect = [&](const int64_t* index) {
    const Pair place{index[input.dim() - 2], index[input.dim() - 1]};
    const double factor = 1 / divisor(place);
    Expected sum;
    double count = 0;
    for_each_in(window(place), [&](int64_t row, int64_t column) {
      sum.add(factor * x.at(x.map(index), row, column));
      ++count;
    });
    sum.terms = count;
    return sum;
  };
  comparison.compare("output", result, terms, expect, input.dim() - 2);
}

/// The gradient that compare_means()' windows give: `around` are the outputs whose windows may hold a place.
template <typename Around, typename Window, typename Divisor>
void compare_means_gradient(const at::Tensor& dy, const at::Tensor& result, int64_t terms, const Around& around,
                            const Window& window, const Divisor& divisor, Comparison& comparison) {
  const Maps gradient(dy);
  const auto expect = [&](const int64_t* index) {
    const Pair place{index[dy.dim() - 2], index[dy.dim() - 1]};
    Expected sum;
    double partial_squares = 0, count = 0;
    for_each_in(around(place), [&](int64_t row, int64_t column) {
      const std::array<Steps, 2> held = window({row, column});
      for (size_t i = 0; i < 2; ++i) {
        if (place[i] < held[i].begin || place[i] >= held[i].end) return;
      }
      const double term = gradient.at(gradient.map(index), row, column) / divisor({row, column});
      sum.add(term);
      partial_squares += sum.value * sum.value + term * term;
      ++count;
    });
    sum.terms = count;
    allow_rounding(sum, result, partial_squares);
    return sum;
  };
  comparison.compare("gradient of the input", result, terms, expect, dy.dim() - 2);
}

// avg_pool2d(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override?)
void compare_window_means(const Stack& arguments, const Stack& results, Comparison& comparison) {
  const at::Tensor input = arguments.at(0).toTensor();
  const MeanWindows mean = mean_windows(arguments, 1, input);
  compare_means(
      input, results.at(0).toTensor(), mean.windows.kernel[0] * mean.windows.kernel[1],
      [&](const Pair& place) { return mean.windows.of(place); },
      [&](const Pair& place) { return mean.divisor_of(place); }, comparison);
}

// avg_pool2d_backward(grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override?)
void compare_window_means_gradient(const Stack& arguments, const Stack& results, Comparison& comparison) {
  const at::Tensor dy = arguments.at(0).toTensor();
  const MeanWindows mean = mean_windows(arguments, 2, arguments.at(1).toTensor());
  compare_means_gradient(
      dy, results.at(0).toTensor(), mean.windows.kernel[0] * mean.windows.kernel[1],
      [&](const Pair& place) {
        return mean.windows.around(place, {dy.size(-2), dy.size(-1)});
      },
      [&](const Pair& place) { return mean.windows.of(place); },
      [&](const Pair& place) { return mean.divisor_of(place); }, comparison);
}

/// Cells of a grid over a map, which overlap where they do not divide it.
std::array<Steps, 2> cell_of(const Pair& place, const Pair& cells, const Pair& sides) {
  std::array<Steps, 2> cell;
  for (size_t i = 0; i < 2; ++i) {
    cell[i] = {place[i] * sides[i] / cells[i], ((place[i] + 1) * sides[i] + cells[i] - 1) / cells[i], 1};
  }
  return cell;
}

double elements_of(const std::array<Steps, 2>& cell) {
  return static_cast<double>((cell[0].end - cell[0].begin) * (cell[1].end - cell[1].begin));
}

Pair sides_of(const at::Tensor& maps) { return {maps.size(-2), maps.size(-1)}; }

// _adaptive_avg_pool2d(self, output_size)
void compare_cell_means(const Stack& arguments, const Stack& results, Comparison& comparison) {
  const at::Tensor input = arguments.at(0).toTensor(), output = results.at(0).toTensor();
  const Pair cells = sides_of(output), sides = sides_of(input);
  const auto cell = [&](const Pair& place) { return cell_of(place, cells, sides); };
  compare_means(
      input, output, (sides[0] / cells[0] + 1) * (sides[1] / cells[1] + 1), cell,
      [&](const Pair& place) { return elements_of(cell(place)); }, comparison);
}

// _adaptive_avg_pool2d_backward(grad_output, self)
void compare_cell_means_gradient(const Stack& arguments, const Stack& results, Comparison& comparison) {
  const at::Tensor dy = arguments.at(0).toTensor(), input = arguments.at(1).toTensor();
  const Pair cells = sides_of(dy), sides = sides_of(input);
  const auto cell = [&](const Pair& place) { return cell_of(place, cells, sides); };
  const auto around = [&](const Pair&) { return std::array<Steps, 2>{Steps{0, cells[0]}, Steps{0, cells[1]}}; };
  compare_means_gradient(
      dy, results.at(0).toTensor(), cells[0] * cells[1], around, cell,
      [&](const Pair& place) { return elements_of(cell(place)); }, comparison);
}

/// Which dimensions mean.dim(self, dim?, keepdim, dtype?) or mean(self, dtype?) takes together.
std::vector<bool> averaged_dims(const Stack& arguments, int64_t dims) {
  std::vector<int64_t> given;
  if (arguments.size() > 2 && arguments.at(1).isIntList()) given = arguments.at(1).toIntVector();
  std::vector<bool> averaged(static_cast<size_t>(dims), given.empty());
  for (const int64_t dim : given) averaged[static_cast<size_t>((dim + dims) % dims)] = true;
  return averaged;
}

void compare_mean(const Stack& arguments, const Stack& results, Comparison& comparison) {
  const at::Tensor input = arguments.at(0).toTensor();
  if (input.numel() == 0 || input.dim() == 0) return;
  const std::vector<bool> averaged = averaged_dims(arguments, input.dim());
  std::vector<int64_t> order, sizes;  // the dimensions that stay, then the others
  for (const bool is_averaged : {false, true}) {
    for (int64_t i = 0; i < input.dim(); ++i) {
      if (averaged[static_cast<size_t>(i)] != is_averaged) continue;
      order.push_back(i);
      if (!is_averaged) sizes.push_back(input.size(i));
    }
  }
  sizes.push_back(1);
  const at::Tensor result = results.at(0).toTensor().reshape(sizes);
  sizes.back() = -1;
  const Numbers x(input.permute(order).reshape(sizes));  // each mean's along the last dimension
  const int64_t last = x.dim() - 1, count = x.size(last), stride = x.stride(last);
  comparison.compare("output", result, count, [&](const int64_t* index) {
    const float* data = x.data();
    for (int64_t i = 0; i < last; ++i) data += index[i] * x.stride(i);
    Expected sum{0, 0, static_cast<double>(count)};
    for (int64_t i = 0; i < count; ++i) sum.add(data[i * stride] / static_cast<double>(count));
    // LibTorch 1.13 rounds partial sums, and the sum before it is divided.
    if (TORCH_VERSION_MAJOR < 2) allow_rounding(sum, result, 16 * sum.squares);
    return sum;
  });
}

}  // namespace

std::vector<Rule> pooling_rules() {
  return {{"aten::max_pool2d_with_indices", nullptr, compare_maxima},
          {"aten::max_pool2d_with_indices_backward", prepare_maxima_gradient, compare_maxima_gradient},
          {"aten::avg_pool2d", nullptr, compare_window_means},
          {"aten::avg_pool2d_backward", nullptr, compare_window_means_gradient},
          {"aten::_adaptive_avg_pool2d", nullptr, compare_cell_means},
          {"aten::_adaptive_avg_pool2d_backward", nullptr, compare_cell_means_gradient},
          {"aten::mean", nullptr, compare_mean}};
}

}  // namespace stoker::proof
