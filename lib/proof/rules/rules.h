// SPDX-License-Identifier: Apache-2.0
// The expected results of each operator of a library: which ones are proven, and how each is compared with plain
// loops.
#pragma once

#include <ATen/core/stack.h>

#include <string>
#include <vector>

#include "proof/rules/comparison.h"

namespace stoker::proof {

struct Rule {
  const char* name;  ///< name of the operator: "aten::convolution"
  /// Makes arguments that follow from others right, after all were filled with noise: the mean and the deviation that
  /// batch norm's backward pass is given, the indices of a pooling. Null: all are independent.
  void (*prepare)(torch::jit::Stack& arguments);
  /// Compares samples of `results` with what follows from `arguments`, which are as the operator got them.
  void (*compare)(const torch::jit::Stack& arguments, const torch::jit::Stack& results, Comparison& comparison);
};

/// Null: not one that is proven.
const Rule* rule_of(const std::string& operator_name);

/// Whether LibTorch computes the product of matrices of a reduced type by loops of its own on a CPU: no library is
/// called for so few terms (ATen/native/mkldnn/Matmul.cpp, use_mkldnn_bf16_matmul).
bool is_tiny_product(const at::Tensor& left, const at::Tensor& right);

// Rules of one kind each.
std::vector<Rule> convolution_rules();
std::vector<Rule> product_rules();
std::vector<Rule> norm_rules();
std::vector<Rule> pooling_rules();
std::vector<Rule> attention_rules();  ///< softmax and GELU, too

}  // namespace stoker::proof
