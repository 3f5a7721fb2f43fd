// SPDX-License-Identifier: Apache-2.0
// Batch, layer and group norm and their gradients: (x - mean) / sqrt(variance + eps) * weight + bias, where mean and
// variance are those of a set of elements: of a channel, of an image, of some channels of an image.
#include <ATen/Parallel.h>
#include <ATen/ops/cudnn_batch_norm.h>
#include <ATen/ops/zeros_like.h>
#include <torch/types.h>
#include <torch/version.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "proof/rules/comparison.h"
#include "proof/rules/rules.h"

namespace stoker::proof {
namespace {

// The elements that a norm takes together, and sums over them in double precision: those of a channel, of an image, of
// some channels of an image.

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
  /// The set of an element of a result with one for each set: [channels], [images, sets] or [sizes of images..., 1...].
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

/// Sums of the gradient, and of its products with the normalized input.
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

using torch::jit::Stack;

constexpr double kSpread = 0.1;     // least variance that a running one is set to
constexpr double kUsualEps = 1e-5;  // where a gradient is not given it
constexpr int64_t kNoPixels = 8;    // more than dimensions: a result without borders
constexpr double kSquaredMean =
    0x1p-8;  // of power: what a mean rounded to bfloat16 adds to a variance, to its rounding
constexpr double kReducedUnits = 0x1p13;  // rounding to bfloat16, in the units of Expected::squares

at::Tensor norm_tensor(const c10::IValue& value) { return value.isTensor() ? value.toTensor() : at::Tensor(); }

bool is_reduced(const at::Tensor& tensor) {
  return tensor.defined() && (tensor.scalar_type() == at::kBFloat16 || tensor.scalar_type() == at::kHalf);
}

/// The arguments of a call; missing tensors are undefined.
struct NormCall {
  NormSets sets;
  at::Tensor dy, input, weight, bias, mean, scale;  ///< `scale`: inverse deviation, or variance if not `of_input`
  bool of_input = true;                             ///< mean and deviation are those of the input
  double eps = kUsualEps;
  std::array<bool, 3> mask{};
};

std::vector<Moments> moments_given(const NormCall& call) {
  const Numbers means(call.mean.reshape({-1})), scales(call.scale.reshape({-1}));
  std::vector<Moments> moments(static_cast<size_t>(means.size(0)));
  for (int64_t i = 0; i < means.size(0); ++i) {
    const double scale = call.of_input ? scales.at(&i) : 1 / std::sqrt(scales.at(&i) + call.eps);
    moments[static_cast<size_t>(i)] = {means.at(&i), scale};
  }
  return moments;
}

/// In training, results after the output are the mean and the inverse deviation of each set.
void compare_statistics(const NormCall& call, const std::vector<Moments>& moments, const Stack& results,
                        Comparison& comparison) {
  const auto count = static_cast<double>(call.sets.elements());
  const bool is_rounded = is_reduced(norm_tensor(results.at(1)));
  // Squares of numbers with few bits are rounded in one direction where a long sum is large: over 800,000 of them a sum
  // in float32 was off by 23 times what roundings in any direction give.
  const double one_way = is_reduced(call.input) ? 4 : 1;
  for (const bool is_mean : {true, false}) {
    comparison.compare(
        is_mean ? "mean" : "inverse deviation", norm_tensor(results.at(is_mean ? 1 : 2)), 1,
        [&, is_mean](const int64_t* index) {
          const Moments& moment = moments[call.sets.set_at(index)];
          const double unsure = one_way * moment.inverse / 2 * moment.power / moment.spread;
          Expected sum = is_mean ? Expected{moment.mean, moment.power / count, count}
                                 : Expected{moment.inverse, unsure * unsure, count};
          if (is_rounded)
            sum.squares += std::pow(kReducedUnits * (std::abs(sum.value) + (is_mean ? 0 : unsure * kSquaredMean)), 2) /
                           (count + 1);  // the variance was, too
          return sum;
        },
        kNoPixels);
  }
}

void compare_output(const NormCall& call, const Stack& results, Comparison& comparison) {
  const NormSets& sets = call.sets;
  const Numbers x = sets.numbers(call.input);
  const std::vector<Moments> moments = call.of_input ? moments_of(sets, x, call.eps) : moments_given(call);
  const auto weights = channel_values(sets, call.weight, 1), biases = channel_values(sets, call.bias, 0);
  const auto count = static_cast<double>(sets.elements());
  // The kernels may take mean and deviation from where they were rounded to the type of these results.
  const double coarse = call.of_input && is_reduced(norm_tensor(results.at(1))) ? 2 * kReducedUnits : 0;
  comparison.compare("output", results.at(0).toTensor(), 1, [&](const int64_t* index) {
    const NormPlace place = sets.place_of(index);
    const Moments& moment = moments[sets.set_of(place[0], place[1])];
    const double factor = moment.inverse * weights[static_cast<size_t>(place[1])];
    Expected sum{0, 0, 3};
    sum.add(x.at(place.data()) * factor);
    sum.add(-moment.mean * factor);
    const double scaled = sum.value,
                 off = coarse * (std::abs(scaled) * (1 + moment.power / moment.spread * kSquaredMean) +
                                 std::abs(moment.mean * factor));
    sum.add(biases[static_cast<size_t>(place[1])]);
    if (call.of_input) sum.squares += factor * factor * moment.power;  // errors of the mean
    // A variance is a sum of positive numbers: errors of adding grow with the square root of their count.
    const double unsure = call.of_input ? scaled / 2 * moment.power / moment.spread : 0;
    sum.squares += (unsure * unsure * count + off * off) / (sum.terms + 1);
    return sum;
  });
  if (call.of_input) compare_statistics(call, moments, results, comparison);
}

/// LibTorch adds up layer norm's gradients of weight and bias in the type of the input, whatever theirs is.
bool adds_reduced(const NormCall& call) {
  return call.sets.first_pixel_dim == call.sets.sizes.size() && call.sets.sets_per_image == 1 && call.input.is_cpu() &&
         is_reduced(call.input);
}

/// Where gradient and input lie differently in memory, LibTorch rounds sums and products of batch norm's backward pass
/// to the type of the input on the way.
bool rounds_on_the_way(const NormCall& call) {
  return is_reduced(call.input) && call.input.is_cpu() && call.dy.strides() != call.input.strides();
}

/// A sum that is rounded after each image: the errors of these roundings, in any direction. Twice their usual size:
/// among thousands of channels some come near the worst (1.06 times the usual size was seen in 36,000 operations).
double rounding_of_partial_sums(const NormCall& call, const Expected& sum) {
  return 2 * rounding(call.input.scalar_type()) *
         (std::abs(sum.value) + std::sqrt(sum.squares * static_cast<double>(call.sets.images)));
}

void compare_gradients(const NormCall& call, const Stack& results, Comparison& comparison) {
  const NormSets& sets = call.sets;
  const Numbers dy = sets.numbers(call.dy), x = sets.numbers(call.input);
  const auto moments = moments_given(call);
  const auto weights = channel_values(sets, call.weight, 1), ones = channel_values(sets, {}, 1);
  const bool is_batch = sets.sets_per_image == 0;  // a weight for each set: sums of one kind are enough
  const auto of_channels = gradient_sums(sets, dy, x, moments, nullptr);
  const auto of_sets = is_batch ? of_channels : gradient_sums(sets, dy, x, moments, &weights);
  const std::vector<double>& missing = is_batch ? weights : ones;
  const auto count = static_cast<double>(sets.elements());
  const auto input_gradient = [&](const int64_t* index) {
    const NormPlace place = sets.place_of(index);
    const auto channel = static_cast<size_t>(place[1]), set = sets.set_of(place[0], place[1]);
    const double r = moments[set].inverse, x_hat = (x.at(place.data()) - moments[set].mean) * r;
    Expected sum{0, 0, 3};
    sum.add(r * weights[channel] * dy.at(place.data()));
    if (!call.of_input) return sum;
    const auto& [plain, product] = of_sets[set];
    const double factor = missing[channel] * r / count;
    if (rounds_on_the_way(call)) {
      sum.intermediate = std::abs(factor) * (std::abs(plain.value) + 2 * std::abs(x_hat * product.value)) +
                         std::abs(r * weights[channel] * dy.at(place.data()));
      sum.allowed = std::abs(factor) * rounding_of_partial_sums(call, plain);
    }
    sum.value -= factor * (plain.value + x_hat * product.value);
    sum.squares += factor * factor * count * (plain.squares + x_hat * x_hat * product.squares);  // errors of two means
    return sum;
  };
  const auto of_channel = [&](const char* what, size_t number, Expected GradientSums::*which) {
    if (!call.mask[number]) return;
    const auto expect = [&](const int64_t* index) {
      Expected sum = of_channels[sets.channel_at(index)].*which;
      if (rounds_on_the_way(call)) sum.allowed = rounding_of_partial_sums(call, sum);
      if (adds_reduced(call)) sum.squares *= 1 + 8 * kReducedUnits * kReducedUnits;
      sum.terms = static_cast<double>(sets.images * sets.pixels);
      return sum;
    };
    comparison.compare(what, norm_tensor(results.at(number)), 1, expect, kNoPixels);
  };
  if (call.mask[0]) comparison.compare("gradient of the input", norm_tensor(results.at(0)), 1, input_gradient);
  of_channel("gradient of the weight", 1, &GradientSums::product);
  of_channel("gradient of the bias", 2, &GradientSums::plain);
}

std::array<bool, 3> mask_of(const c10::IValue& value) {
  const auto mask = value.toBoolList();
  return {mask.get(0), mask.get(1), mask.get(2)};
}

// native_batch_norm(input, weight?, bias?, running_mean?, running_var?, training, momentum, eps), cudnn's has the same
NormCall batch_norm(const Stack& stack) {
  const auto tensor = [&](size_t i) { return norm_tensor(stack.at(i)); };
  return {NormSets(tensor(0), 1, 2, 0), {}, tensor(0), tensor(1), tensor(2), tensor(3), tensor(4), stack.at(5).toBool(),
          stack.at(7).toDouble()};
}

// native_batch_norm_backward(grad_out, input, weight?, running_mean?, running_var?, save_mean?, save_invstd?, train,
//                            eps, output_mask)
NormCall batch_norm_backward(const Stack& stack) {
  const auto tensor = [&](size_t i) { return norm_tensor(stack.at(i)); };
  const size_t mean = stack.at(7).toBool() ? 5 : 3;
  return {NormSets(tensor(1), 1, 2, 0),
          tensor(0),
          tensor(1),
          tensor(2),
          {},
          tensor(mean),
          tensor(mean + 1),
          mean == 5,
          stack.at(8).toDouble(),
          mask_of(stack.at(9))};
}

// cudnn_batch_norm_backward(input, grad_output, weight, running_mean?, running_var?, save_mean?, save_var?, eps,
//                           reserve), where save_var is the inverse deviation
NormCall cudnn_norm_backward(const Stack& stack) {
  const auto tensor = [&](size_t i) { return norm_tensor(stack.at(i)); };
  return {NormSets(tensor(0), 1, 2, 0), tensor(1),         tensor(0), tensor(2), {}, tensor(5), tensor(6), true,
          stack.at(7).toDouble(),       {true, true, true}};
}

// native_layer_norm(input, normalized_shape, weight?, bias?, eps)
NormCall layer_norm(const Stack& stack) {
  const at::Tensor input = norm_tensor(stack.at(0));
  const auto dims = static_cast<int64_t>(stack.at(1).toIntVector().size());
  return {NormSets(input, input.dim() - dims, input.dim(), 1),
          {},
          input,
          norm_tensor(stack.at(2)),
          norm_tensor(stack.at(3)),
          {},
          {},
          true,
          stack.at(4).toDouble()};
}

// native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight?, bias?, output_mask)
NormCall layer_norm_backward(const Stack& stack) {
  const auto tensor = [&](size_t i) { return norm_tensor(stack.at(i)); };
  const auto dims = static_cast<int64_t>(stack.at(2).toIntVector().size());
  return {NormSets(tensor(1), tensor(1).dim() - dims, tensor(1).dim(), 1),
          tensor(0),
          tensor(1),
          tensor(5),
          {},
          tensor(3),
          tensor(4),
          true,
          kUsualEps,
          mask_of(stack.at(7))};
}

// native_group_norm(input, weight?, bias?, N, C, HxW, group, eps)
NormCall group_norm(const Stack& stack) {
  const auto tensor = [&](size_t i) { return norm_tensor(stack.at(i)); };
  return {NormSets(tensor(0), 1, 2, stack.at(6).toInt()),
          {},
          tensor(0),
          tensor(1),
          tensor(2),
          {},
          {},
          true,
          stack.at(7).toDouble()};
}

// native_group_norm_backward(grad_out, input, mean, rstd, weight?, N, C, HxW, group, output_mask)
NormCall group_norm_backward(const Stack& stack) {
  const auto tensor = [&](size_t i) { return norm_tensor(stack.at(i)); };
  return {NormSets(tensor(1), 1, 2, stack.at(8).toInt()),
          tensor(0),
          tensor(1),
          tensor(4),
          {},
          tensor(2),
          tensor(3),
          true,
          kUsualEps,
          mask_of(stack.at(9))};
}

/// Makes mean and deviation those of the input, and running variances positive.
template <NormCall (*parse)(const Stack&)>
void prepare_norm(Stack& arguments) {
  const NormCall call = parse(arguments);
  if (!call.of_input) call.scale.copy_(call.scale.abs().add(kSpread));
  if (!call.of_input || !call.dy.defined()) return;
  const auto moments = moments_of(call.sets, call.sets.numbers(call.input), call.eps);
  std::vector<float> means, scales;
  for (const Moments& moment : moments) {
    means.push_back(static_cast<float>(moment.mean));
    scales.push_back(static_cast<float>(moment.inverse));
  }
  call.mean.copy_(at::tensor(means).view(call.mean.sizes()));
  call.scale.copy_(at::tensor(scales).view(call.scale.sizes()));
}

/// Also the values that cuDNN keeps of the forward pass.
void prepare_cudnn(Stack& arguments) {
  prepare_norm<cudnn_norm_backward>(arguments);
  const at::Tensor input = norm_tensor(arguments.at(0)), weight = norm_tensor(arguments.at(2));
  const at::Tensor reserve = norm_tensor(arguments.at(8));
  if (!input.is_cuda() || !reserve.defined() || reserve.numel() == 0) return;
  const at::Tensor zeros = at::zeros_like(weight);
  const auto results = at::cudnn_batch_norm(input, weight, zeros, zeros.clone(), zeros.clone(), /*training=*/true, 0.1,
                                            arguments.at(7).toDouble());
  if (std::get<3>(results).sizes() == reserve.sizes()) reserve.copy_(std::get<3>(results));
}

/// Nothing is compared where LibTorch 1.13 adds up layer and group norm's numbers in bfloat16, which gives no digit.
bool is_norm_covered(const NormCall& call) {
  return TORCH_VERSION_MAJOR >= 2 || call.sets.sets_per_image == 0 || !is_reduced(call.input);
}

template <NormCall (*parse)(const Stack&)>
void compare_norm(const Stack& arguments, const Stack& results, Comparison& comparison) {
  const NormCall call = parse(arguments);
  if (!is_norm_covered(call)) return;
  call.dy.defined() ? compare_gradients(call, results, comparison) : compare_output(call, results, comparison);
}

template <NormCall (*parse)(const Stack&)>
Rule norm_rule(const char* name) {
  return {name, prepare_norm<parse>, compare_norm<parse>};
}

}  // namespace

std::vector<Rule> norm_rules() {
  return {norm_rule<batch_norm>("aten::native_batch_norm"),
          norm_rule<batch_norm>("aten::cudnn_batch_norm"),
          norm_rule<batch_norm_backward>("aten::native_batch_norm_backward"),
          {"aten::cudnn_batch_norm_backward", prepare_cudnn, compare_norm<cudnn_norm_backward>},
          norm_rule<layer_norm>("aten::native_layer_norm"),
          norm_rule<layer_norm_backward>("aten::native_layer_norm_backward"),
          norm_rule<group_norm>("aten::native_group_norm"),
          norm_rule<group_norm_backward>("aten::native_group_norm_backward")};
}

}  // namespace stoker::proof
