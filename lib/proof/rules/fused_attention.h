// SPDX-License-Identifier: Apache-2.0
// Attention as plain loops: softmax(scale * query key^T) value for each image and head, and its gradients.
#pragma once

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "proof/rules/comparison.h"

namespace stoker::proof {

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
  /// Of place `from` for place `to`, before softmax, in the image and head of `index`.
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

  /// What each place gives to `from`, before softmax.
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

}  // namespace stoker::proof
