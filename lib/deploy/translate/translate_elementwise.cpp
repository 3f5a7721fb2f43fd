// SPDX-License-Identifier: Apache-2.0
// Arithmetic of single numbers, and sums and maxima over dimensions.
#include <cmath>

#include "deploy/translate/translator.h"

namespace stoker::deploy {
namespace {

using Integers = std::vector<int64_t>;

Translation unary(const char* name) {
  return [name](const Operation& op) { op.set_result(op.add(name, {op.tensor(0)})); };
}

Translation binary(const char* name) {
  return [name](const Operation& op) { op.set_result(op.add(name, {op.tensor(0), op.tensor(1)})); };
}

/// add(a, b, alpha) and sub(a, b, alpha): b is multiplied by alpha before.
Translation scaled_binary(const char* name) {
  return [name](const Operation& op) {
    const double alpha = op.argument_count() > 2 ? op.number(2) : 1;
    std::string b = op.tensor(1);
    if (alpha != 1) b = op.add("Mul", {b, op.number_constant(alpha)});
    op.set_result(op.add(name, {op.tensor(0), b}));
  };
}

void silu(const Operation& op) {
  const std::string x = op.tensor(0);
  op.set_result(op.add("Mul", {x, op.add("Sigmoid", {x})}));
}

/// min(max(x / 6 + 1 / 2, 0), 1): Howard et al. 2019.
std::string hard_sigmoid_of(const Operation& op, const std::string& x) {
  return op.add("HardSigmoid", {x}, {{"alpha", 1.0F / 6}, {"beta", 0.5F}});
}
/// Alone it stands apart from what multiplies it: OpenCV (4.6 to 4.10) takes every HardSigmoid that is multiplied for a
/// HardSwish, whatever the other factor is.
void hard_sigmoid(const Operation& op) { op.set_result(op.add("Identity", {hard_sigmoid_of(op, op.tensor(0))})); }
void hard_swish(const Operation& op) {
  const std::string x = op.tensor(0);
  op.set_result(op.add("Mul", {x, hard_sigmoid_of(op, x)}));
}

/// x / 2 (1 + erf(x / sqrt(2))): Hendrycks and Gimpel 2016.
// gelu(input, approximate)
void gelu(const Operation& op) {
  if (op.argument_count() > 1 && op.text(1) != "none") op.refuse("its approximation by tanh is not translated");
  const std::string x = op.tensor(0);
  const std::string erf = op.add("Erf", {op.add("Mul", {x, op.number_constant(std::sqrt(0.5))})});
  const std::string share = op.add("Mul", {op.add("Add", {erf, op.number_constant(1)}), op.number_constant(0.5)});
  op.set_result(op.add("Mul", {x, share}));
}

// softmax(input, dim, dtype)
void softmax(const Operation& op) { op.set_result(op.add("Softmax", {op.tensor(0)}, {{"axis", op.integer(1)}})); }

/// Over whole maps, a pooling is what most readers support.
Translation reduction(const char* over_maps, const char* over_any) {
  return [over_maps, over_any](const Operation& op) {  // (input, dims, keepdim, ...)
    const Integers axes = op.integers(1);
    const bool keeps = op.flag(2), is_maps = op.shape(0).size() == 4 && axes == Integers{2, 3};
    if (!is_maps) {
      return op.set_result(op.add(over_any, {op.tensor(0)}, {{"axes", axes}, {"keepdims", int64_t{keeps}}}));
    }
    const std::string pooled = op.add(over_maps, {op.tensor(0)});  // [B, C, 1, 1]
    op.set_result(keeps ? pooled : op.add("Flatten", {pooled}, {{"axis", int64_t{1}}}));
  };
}

}  // namespace

void add_elementwise_translations(Translations& translations) {
  translations["aten::relu"] = unary("Relu");
  translations["aten::sigmoid"] = unary("Sigmoid");
  translations["aten::tanh"] = unary("Tanh");
  translations["aten::exp"] = unary("Exp");
  translations["aten::sqrt"] = unary("Sqrt");
  translations["aten::neg"] = unary("Neg");
  translations["aten::mul"] = binary("Mul");
  translations["aten::div"] = binary("Div");
  translations["aten::add"] = scaled_binary("Add");
  translations["aten::sub"] = scaled_binary("Sub");
  translations["aten::silu"] = silu;
  translations["aten::hardsigmoid"] = hard_sigmoid;
  translations["aten::hardswish"] = hard_swish;
  translations["aten::gelu"] = gelu;
  translations["aten::softmax"] = softmax;
  translations["aten::mean"] = reduction("GlobalAveragePool", "ReduceMean");
  translations["aten::amax"] = reduction("GlobalMaxPool", "ReduceMax");
}

}  // namespace stoker::deploy
