// SPDX-License-Identifier: Apache-2.0
// Operations of transformers besides products: softmax, GELU and SiLU, and attention as one operator, with their
// gradients.
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/softmax.h>
#include <torch/types.h>
#include <torch/version.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "proof/rules/comparison.h"
#include "proof/rules/rules.h"

namespace stoker::proof {
namespace {

// Attention as plain loops: softmax(scale * query key^T) value for each image and head, and its gradients.

/// Elements along one dimension of a tensor.
struct Line {
  const float* data;
  int64_t count, stride;

  /// The one that the element at `index` lies in.
  Line(const Numbers& numbers, const int64_t* index, int64_t dim)
      : count(numbers.size(dim)), stride(numbers.stride(dim)) {
    data = numbers.data();
    for (int64_t i = 0; i < numbers.dim(); ++i) data += i == dim ? 0 : index[i] * numbers.stride(i);
  }
  double operator[](int64_t i) const { return data[i * stride]; }
};

/// A sum, and the squares of those of its terms that are rounded to the type of the operator before they are added.
struct AttentionSum {
  Expected sum;
  double rounded_squares = 0;

  void add(double term) {
    sum.add(term);
    rounded_squares += term * term;
  }
};

/// query [images, heads, places, width], key and value likewise, maybe of another number of places.
struct Attention {
  Numbers q, k, v;
  double scale = 1;
  bool is_causal = false;

  int64_t keys() const { return k.size(2); }
  /// The logit of place `from` for place `to`, before softmax, in the image and head of `index`.
  double logit(const int64_t* index, int64_t from, int64_t to) const { return scale * product(q, k, index, from, to); }
  bool sees(int64_t from, int64_t to) const { return !is_causal || to <= from; }

  static Line row(const Numbers& numbers, const int64_t* index, int64_t place) {
    const int64_t at[] = {index[0], index[1], place, 0};
    return Line(numbers, at, 3);
  }
  static double product(const Numbers& a, const Numbers& b, const int64_t* index, int64_t from, int64_t to) {
    const Line left = row(a, index, from), right = row(b, index, to);
    double sum = 0;
    for (int64_t i = 0; i < left.count; ++i) sum += left[i] * right[i];
    return sum;
  }

  /// The contribution of each place to `from`, before softmax.
  std::vector<double> logits(const int64_t* index, int64_t from) const {
    std::vector<double> logits;
    for (int64_t to = 0; to < keys() && sees(from, to); ++to) logits.push_back(logit(index, from, to));
    return logits;
  }
  /// At [image, head, place, width].
  AttentionSum output(const int64_t* index) const {
    const std::vector<double> row_logits = logits(index, index[2]);
    const double largest = *std::max_element(row_logits.begin(), row_logits.end());
    double total = 0;
    for (const double logit : row_logits) total += std::exp(logit - largest);
    AttentionSum sum;
    for (size_t to = 0; to < row_logits.size(); ++to) {
      sum.add(std::exp(row_logits[to] - largest) / total * row(v, index, static_cast<int64_t>(to))[index[3]]);
    }
    sum.sum.terms = static_cast<double>(row_logits.size());
    return sum;
  }
  /// At [image, head, place].
  Expected log_sum(const int64_t* index) const {
    const std::vector<double> row_logits = logits(index, index[2]);
    const double largest = *std::max_element(row_logits.begin(), row_logits.end());
    double total = 0;
    for (const double logit : row_logits) total += std::exp(logit - largest);
    Expected sum;
    for (const double term : {largest, std::log(total)}) sum.add(term);
    sum.squares += scale * scale * product(q, q, index, index[2], index[2]);  // keys are up to 1
    sum.terms = static_cast<double>(q.size(3));
    return sum;
  }
};

/// From the gradient `dy` of the output, with output and logarithms of the sums as the operator is given them.
struct AttentionGradients {
  const Attention& attention;
  Numbers dy, output, log_sums;  ///< log_sums [images, heads, places]

  double share(const int64_t* index, int64_t from, int64_t to) const {
    const int64_t at[] = {index[0], index[1], from};
    return std::exp(attention.logit(index, from, to) - log_sums.at(at));
  }
  /// Adds a term of a sum: the gradient of the logit of `from` for `to`, times `factor`. It is a difference of two
  /// products of `dy` with numbers up to 1, which round on their own.
  void add_logit(AttentionSum& sum, const int64_t* index, int64_t from, int64_t to, double factor) const {
    const double own = Attention::product(dy, attention.v, index, from, to),
                 mean = Attention::product(dy, output, index, from, from);
    const double weight = share(index, from, to) * attention.scale * factor;
    sum.sum.add(weight * (own - mean));
    sum.rounded_squares += weight * weight * (own * own + mean * mean);
    sum.sum.squares += 2 * weight * weight * Attention::product(dy, dy, index, from, from);
  }
  AttentionSum of_query(const int64_t* index) const {
    AttentionSum sum;
    for (int64_t to = 0; to < attention.keys() && attention.sees(index[2], to); ++to) {
      add_logit(sum, index, index[2], to, Attention::row(attention.k, index, to)[index[3]]);
    }
    sum.sum.terms = static_cast<double>(attention.keys());
    return sum;
  }
  AttentionSum of_key(const int64_t* index) const {
    AttentionSum sum;
    for (int64_t from = attention.is_causal ? index[2] : 0; from < dy.size(2); ++from) {
      add_logit(sum, index, from, index[2], Attention::row(attention.q, index, from)[index[3]]);
    }
    sum.sum.terms = static_cast<double>(dy.size(2));
    return sum;
  }
  AttentionSum of_value(const int64_t* index) const {
    AttentionSum sum;
    for (int64_t from = attention.is_causal ? index[2] : 0; from < dy.size(2); ++from) {
      sum.add(share(index, from, index[2]) * Attention::row(dy, index, from)[index[3]]);
    }
    sum.sum.terms = static_cast<double>(dy.size(2));
    return sum;
  }
};

/// Where an operator of attention has what, and whether it is the gradient.
struct AttentionCall {
  const char* name;
  bool is_gradient;
  size_t query, log_sum, dropout, causal, mask, scale;  ///< key and value follow query, the output precedes log_sum
};

constexpr size_t kNoArgument = 99;
// (query, key, value, dropout_p, is_causal, attn_mask?, scale?) -> output, logsumexp
inline constexpr AttentionCall kOnHost{"aten::_scaled_dot_product_flash_attention_for_cpu", false, 0, 1, 3, 4, 5, 6};
// (grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, attn_mask?, scale?)
inline constexpr AttentionCall kOnHostBackward{
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward", true, 1, 5, 6, 7, 8, 9};
// (query, key, value, dropout_p, is_causal, return_debug_mask, scale?) -> output, logsumexp, ...
inline constexpr AttentionCall kFlash{"aten::_scaled_dot_product_flash_attention", false, 0, 1, 3, 4, kNoArgument, 6};
// (grad_out, query, key, value, out, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal,
//  philox_seed, philox_offset, scale?)
inline constexpr AttentionCall kFlashBackward{
    "aten::_scaled_dot_product_flash_attention_backward", true, 1, 5, 10, 11, kNoArgument, 14};
// (query, key, value, attn_bias?, compute_log_sumexp, dropout_p, is_causal, scale?) -> output, logsumexp, ...
inline constexpr AttentionCall kEfficient{"aten::_scaled_dot_product_efficient_attention", false, 0, 1, 5, 6, 3, 7};
// (grad_out, query, key, value, attn_bias, out, logsumexp, philox_seed, philox_offset, dropout_p, grad_input_mask,
//  is_causal, scale?)
inline constexpr AttentionCall kEfficientBackward{
    "aten::_scaled_dot_product_efficient_attention_backward", true, 1, 6, 9, 11, 4, 12};

using torch::jit::Stack;

constexpr double kRootHalf = 0.70710678118654752440, kRootOfTwoOverPi = 0.79788456080286535588;
constexpr double kGaussian = 0.39894228040143267794;  // 1 / sqrt(2 pi)
constexpr double kQuickExp = 8;                       // times: fast exponentials are 20 units off
constexpr double kRoundedToo = 0x1p13;                // rounding to bfloat16, in the units of Expected::squares
constexpr int64_t kNoImage = 8;                       // more than dimensions: no borders

bool rounds_much(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kBFloat16 || tensor.scalar_type() == at::kHalf;
}

/// Adds to `sum` what rounding of intermediate numbers to the type of `result` does, their squares being `squares`.
void allow_reduced(Expected& sum, const at::Tensor& result, double squares) {
  if (rounds_much(result)) sum.squares += kRoundedToo * kRoundedToo * squares / (sum.terms + 1);
}

// _softmax(self, dim, half_to_float), _log_softmax(self, dim, half_to_float)
template <bool is_log>
void compare_softmax(const Stack& arguments, const Stack& results, Comparison& comparison) {
  const at::Tensor input = arguments.at(0).toTensor(), result = results.at(0).toTensor();
  if (input.dim() == 0) return;
  const Numbers x(input);
  const int64_t dim = (arguments.at(1).toInt() + input.dim()) % input.dim();
  const auto expect = [&](const int64_t* index) {
    const Line line(x, index, dim);
    double largest = line[0], sum = 0;
    for (int64_t i = 0; i < line.count; ++i) largest = std::max(largest, line[i]);
    for (int64_t i = 0; i < line.count; ++i) sum += std::exp(line[i] - largest);
    Expected expected;
    if (is_log) {
      for (const double term : {line[index[dim]], -largest, -std::log(sum)}) expected.add(term);
    } else {
      expected.add(std::exp(line[index[dim]] - largest) / sum);
    }
    const double squares = expected.squares;
    if (!is_log) expected.squares *= kQuickExp * kQuickExp;
    expected.terms = static_cast<double>(line.count);  // of a sum of positive numbers
    allow_reduced(expected, result, (is_log ? 4 : 1) * squares);
    return expected;
  };
  comparison.compare("output", result, x.size(dim), expect, kNoImage);
}

/// The output that the gradient is given is one of softmax.
template <bool is_log>
void prepare_softmax_gradient(Stack& arguments) {
  const at::Tensor output = arguments.at(1).toTensor();
  const at::Tensor logits = output.to(at::kCPU, at::kDouble);
  const int64_t dim = arguments.at(2).toInt();
  output.copy_(is_log ? at::log_softmax(logits, dim) : at::softmax(logits, dim));
}

// _softmax_backward_data(grad_output, output, dim, input_dtype), _log_softmax_backward_data(...)
template <bool is_log>
void compare_softmax_gradient(const Stack& arguments, const Stack& results, Comparison& comparison) {
  const at::Tensor output = arguments.at(1).toTensor(), result = results.at(0).toTensor();
  if (output.dim() == 0) return;
  const Numbers dy(arguments.at(0).toTensor()), y(output);
  const int64_t dim = (arguments.at(2).toInt() + output.dim()) % output.dim();
  const auto expect = [&](const int64_t* index) {
    const Line gradients(dy, index, dim), values(y, index, dim);
    Expected sum;
    for (int64_t i = 0; i < values.count; ++i) sum.add(gradients[i] * (is_log ? 1 : values[i]));
    const double g = gradients[index[dim]], value = values[index[dim]];
    const double factor = is_log ? std::exp(value) : value;
    Expected expected;
    expected.terms = static_cast<double>(values.count);
    expected.value = is_log ? g - factor * sum.value : factor * (g - sum.value);
    const double own = is_log ? g : factor * g, rest = factor * sum.value;
    expected.squares = own * own + factor * factor * sum.squares + kQuickExp * kQuickExp * rest * rest;
    allow_reduced(expected, result, own * own + rest * rest);
    return expected;
  };
  comparison.compare("gradient of the input", result, y.size(dim), expect, kNoImage);
}

/// A function of one number and its derivative, as sums of terms that may cancel.
struct Curve {
  Expected value, slope;
};

Curve gelu(double x) {
  const double error = std::erf(x * kRootHalf);
  Curve curve;
  for (const double term : {x / 2, x / 2 * error}) curve.value.add(term);
  for (const double term : {0.5, error / 2, x * kGaussian * std::exp(-x * x / 2)}) curve.slope.add(term);
  return curve;
}

Curve gelu_by_tanh(double x) {
  const double inner = kRootOfTwoOverPi * (x + 0.044715 * x * x * x), tanh = std::tanh(inner);
  const double inner_slope = kRootOfTwoOverPi * (1 + 3 * 0.044715 * x * x);
  Curve curve;
  for (const double term : {x / 2, x / 2 * tanh}) curve.value.add(term);
  for (const double term : {0.5, tanh / 2, x / 2 * inner_slope, -x / 2 * tanh * tanh * inner_slope}) {
    curve.slope.add(term);
  }
  return curve;
}

Curve silu(double x) {
  const double sigmoid = 1 / (1 + std::exp(-x));
  Curve curve;
  curve.value.add(x * sigmoid);
  for (const double term : {sigmoid, x * sigmoid, -x * sigmoid * sigmoid}) curve.slope.add(term);
  return curve;
}

/// LibTorch 1.13 rounds each step of these functions.
constexpr double kRoundsTerms = TORCH_VERSION_MAJOR < 2 ? 12 : 1;

/// Terms have errors of their own, those of exp() and erf().
Expected curve_value(const Expected& sum, double factor, const at::Tensor& result) {
  Expected expected{factor * sum.value, factor * factor * sum.squares, 3};
  allow_reduced(expected, result, kRoundsTerms * expected.squares);
  return expected;
}

void compare_curve(Curve (*curve)(double), const Stack& arguments, const Stack& results, Comparison& comparison) {
  const Numbers x(arguments.at(0).toTensor());
  const at::Tensor result = results.at(0).toTensor();
  comparison.compare("output", result, 1,
                     [&](const int64_t* index) { return curve_value(curve(x.at(index)).value, 1, result); });
}

void compare_slope(Curve (*curve)(double), const Stack& arguments, const Stack& results, Comparison& comparison) {
  const Numbers dy(arguments.at(0).toTensor()), x(arguments.at(1).toTensor());
  const at::Tensor result = results.at(0).toTensor();
  comparison.compare("gradient of the input", result, 1,
                     [&](const int64_t* index) { return curve_value(curve(x.at(index)).slope, dy.at(index), result); });
}

// gelu(self, approximate), gelu_backward(grad_output, self, approximate)
auto gelu_of(const c10::IValue& approximate) { return approximate.toStringRef() == "tanh" ? gelu_by_tanh : gelu; }

void compare_gelu(const Stack& arguments, const Stack& results, Comparison& comparison) {
  compare_curve(gelu_of(arguments.at(1)), arguments, results, comparison);
}

void compare_gelu_gradient(const Stack& arguments, const Stack& results, Comparison& comparison) {
  compare_slope(gelu_of(arguments.at(2)), arguments, results, comparison);
}

// silu(self), silu_backward(grad_output, self)
void compare_silu(const Stack& arguments, const Stack& results, Comparison& comparison) {
  compare_curve(silu, arguments, results, comparison);
}

void compare_silu_gradient(const Stack& arguments, const Stack& results, Comparison& comparison) {
  compare_slope(silu, arguments, results, comparison);
}

/// The shares that a sum's terms are made of are exponentials, and rounded before they are multiplied.
Expected with_inexact_shares(const AttentionSum& sum, const at::Tensor& result) {
  Expected expected = sum.sum;
  expected.squares *= kQuickExp * kQuickExp;
  allow_reduced(expected, result, 16 * sum.rounded_squares);
  return expected;
}

/// Calls that are not compared: with dropout, a mask, or more queries or fewer than keys in causal order, where the
/// operators differ in what a query sees.
bool is_covered(const AttentionCall& call, const Stack& arguments) {
  const at::Tensor query = arguments.at(call.query).toTensor(), key = arguments.at(call.query + 1).toTensor();
  const bool has_mask =
      call.mask != kNoArgument && arguments.at(call.mask).isTensor() && arguments.at(call.mask).toTensor().defined();
  return !has_mask && arguments.at(call.dropout).toDouble() == 0 && query.dim() == 4 && query.size(1) == key.size(1) &&
         (!arguments.at(call.causal).toBool() || query.size(2) == key.size(2));
}

double scale_of(const AttentionCall& call, const Stack& arguments) {
  const c10::IValue& scale = arguments.at(call.scale);
  const int64_t width = arguments.at(call.query).toTensor().size(-1);
  return scale.isDouble() ? scale.toDouble() : 1 / std::sqrt(static_cast<double>(width));
}

Attention attention_of(const AttentionCall& call, const Stack& arguments) {
  const auto numbers = [&](size_t i) { return Numbers(arguments.at(call.query + i).toTensor()); };
  return {numbers(0), numbers(1), numbers(2), scale_of(call, arguments), arguments.at(call.causal).toBool()};
}

/// The gradient is given what the forward pass gave.
template <const AttentionCall& call>
void prepare_attention(Stack& arguments) {
  if (!is_covered(call, arguments)) return;
  const auto wide = [&](size_t i, int64_t image) {
    return arguments.at(call.query + i).toTensor()[image].to(at::kCPU, at::kDouble);
  };
  const at::Tensor output = arguments.at(call.log_sum - 1).toTensor(), log_sums = arguments.at(call.log_sum).toTensor();
  log_sums.fill_(std::numeric_limits<double>::infinity());  // some have more places than there are queries
  for (int64_t image = 0; image < output.size(0); ++image) {
    at::Tensor logits = at::matmul(wide(0, image) * scale_of(call, arguments), wide(1, image).transpose(-2, -1));
    if (arguments.at(call.causal).toBool()) {
      logits += at::full_like(logits, -std::numeric_limits<double>::infinity()).triu(1);
    }
    output[image].copy_(at::matmul(at::softmax(logits, -1), wide(2, image)));
    log_sums[image].narrow(1, 0, logits.size(1)).copy_(at::logsumexp(logits, -1));
  }
}

void compare_attention_output(const AttentionCall& call, const Stack& arguments, const Stack& results,
                              Comparison& comparison) {
  const Attention attention = attention_of(call, arguments);
  const at::Tensor output = results.at(0).toTensor(), log_sums = results.at(call.log_sum).toTensor();
  const int64_t queries = attention.q.size(2), terms = attention.keys() * attention.q.size(3);
  comparison.compare("output", output, terms,
                     [&](const int64_t* index) { return with_inexact_shares(attention.output(index), output); });
  if (!log_sums.defined() || log_sums.dim() != 3 || log_sums.size(2) < queries) return;
  comparison.compare("logarithm of the sum", log_sums.narrow(2, 0, queries), terms, [&](const int64_t* index) {
    Expected sum = attention.log_sum(index);
    allow_reduced(sum, output, 1);  // its exponentials may be rounded
    return sum;
  });
}

void compare_attention_gradients(const AttentionCall& call, const Stack& arguments, const Stack& results,
                                 Comparison& comparison) {
  const Attention attention = attention_of(call, arguments);
  const auto numbers = [&](size_t i) { return Numbers(arguments.at(i).toTensor()); };
  const AttentionGradients gradients{attention, numbers(0), numbers(call.log_sum - 1), numbers(call.log_sum)};
  const auto compare = [&](const char* what, size_t number, int64_t places,
                           AttentionSum (AttentionGradients::*gradient)(const int64_t*) const) {
    const at::Tensor result = results.at(number).toTensor();
    const int64_t terms = 3 * places * attention.q.size(3);
    comparison.compare(what, result, terms, [&, gradient](const int64_t* index) {
      return with_inexact_shares((gradients.*gradient)(index), result);
    });
  };
  compare("gradient of the query", 0, attention.keys(), &AttentionGradients::of_query);
  compare("gradient of the key", 1, attention.q.size(2), &AttentionGradients::of_key);
  compare("gradient of the value", 2, attention.q.size(2), &AttentionGradients::of_value);
}

template <const AttentionCall& call>
void compare_attention(const Stack& arguments, const Stack& results, Comparison& comparison) {
  if (!is_covered(call, arguments)) return;
  call.is_gradient ? compare_attention_gradients(call, arguments, results, comparison)
                   : compare_attention_output(call, arguments, results, comparison);
}

template <const AttentionCall& call>
Rule attention_rule() {
  return {call.name, call.is_gradient ? prepare_attention<call> : nullptr, compare_attention<call>};
}

}  // namespace

std::vector<Rule> attention_rules() {
  return {{"aten::_softmax", nullptr, compare_softmax<false>},
          {"aten::_log_softmax", nullptr, compare_softmax<true>},
          {"aten::_softmax_backward_data", prepare_softmax_gradient<false>, compare_softmax_gradient<false>},
          {"aten::_log_softmax_backward_data", prepare_softmax_gradient<true>, compare_softmax_gradient<true>},
          {"aten::gelu", nullptr, compare_gelu},
          {"aten::gelu_backward", nullptr, compare_gelu_gradient},
          {"aten::silu", nullptr, compare_silu},
          {"aten::silu_backward", nullptr, compare_silu_gradient},
          attention_rule<kOnHost>(),
          attention_rule<kOnHostBackward>(),
          attention_rule<kFlash>(),
          attention_rule<kFlashBackward>(),
          attention_rule<kEfficient>(),
          attention_rule<kEfficientBackward>()};
}

}  // namespace stoker::proof
