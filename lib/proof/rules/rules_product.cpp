// SPDX-License-Identifier: Apache-2.0
// Matrix multiplications, alone or in batches, with what is added to them.
#include <ATen/ops/zeros.h>

#include <cmath>

#include "proof/rules/rules.h"

namespace stoker::proof {
namespace {

using torch::jit::Stack;

/// `left` [..., M, K] by `right` [..., K, N], times `alpha`, plus `beta` times `added`, which is broadcast; [M, N] or
/// [B, M, N].
void compare_product(const at::Tensor& left, const at::Tensor& right, const at::Tensor& added, double beta,
                     double alpha, const at::Tensor& result, Comparison& comparison) {
  const Numbers a(left), b(right);
  const at::Tensor whole = added.defined() ? added.expand(result.sizes()) : at::zeros({1}).expand(result.sizes());
  const Numbers c(whole);
  const int64_t terms = left.size(-1), batch = result.dim() - 2;  // 0: a single product
  // LibTorch computes these itself and rounds to the type after each term.
  const bool is_tiny = is_tiny_product(left, right);
  const auto part = [batch](const Numbers& numbers, const int64_t* index) {
    return numbers.data() + (batch == 1 ? index[0] * numbers.stride(0) : 0);
  };
  comparison.compare(
      "output", result, terms,
      [&](const int64_t* index) {
        const float* const row = part(a, index) + index[batch] * a.stride(batch);
        const float* const column = part(b, index) + index[batch + 1] * b.stride(batch + 1);
        Expected sum;
        for (int64_t k = 0; k < terms; ++k) {
          sum.add(alpha * static_cast<double>(row[k * a.stride(batch + 1)]) *
                  static_cast<double>(column[k * b.stride(batch)]));
        }
        if (added.defined()) {
          sum.intermediate = std::abs(sum.value);  // the product may be rounded before anything is added
          sum.add(beta * c.at(index));
        }
        sum.terms = static_cast<double>(terms);
        if (is_tiny) sum.allowed = rounding(result.scalar_type()) * std::sqrt(sum.squares * sum.terms);
        return sum;
      },
      /*first_spatial=*/batch);
}

// aten::mm(self, mat2), aten::bmm(self, mat2)
void compare_plain(const Stack& arguments, const Stack& results, Comparison& comparison) {
  compare_product(arguments.at(0).toTensor(), arguments.at(1).toTensor(), {}, 0, 1, results.at(0).toTensor(),
                  comparison);
}

// aten::addmm(self, mat1, mat2, beta, alpha), aten::baddbmm(self, batch1, batch2, beta, alpha)
void compare_added(const Stack& arguments, const Stack& results, Comparison& comparison) {
  compare_product(arguments.at(1).toTensor(), arguments.at(2).toTensor(), arguments.at(0).toTensor(),
                  arguments.at(3).toScalar().toDouble(), arguments.at(4).toScalar().toDouble(),
                  results.at(0).toTensor(), comparison);
}

}  // namespace

bool is_tiny_product(const at::Tensor& left, const at::Tensor& right) {
  constexpr int64_t kTiny = 16 * 16 * 16;
  const int64_t terms = left.size(-2) * left.size(-1) * right.size(-1);
  return left.scalar_type() != at::kFloat && (left.is_cpu() || left.is_meta()) && terms <= kTiny;
}

std::vector<Rule> product_rules() {
  return {{"aten::mm", nullptr, compare_plain},
          {"aten::bmm", nullptr, compare_plain},
          {"aten::addmm", nullptr, compare_added},
          {"aten::baddbmm", nullptr, compare_added}};
}

}  // namespace stoker::proof
