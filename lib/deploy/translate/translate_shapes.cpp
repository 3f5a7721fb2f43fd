// SPDX-License-Identifier: Apache-2.0
// Translations of operations that move, cut and join tensors. The first dimension may have any size; the others are
// those of the example.
#include <cmath>

#include "deploy/translate/translator.h"

namespace stoker::deploy {
namespace {

using Integers = std::vector<int64_t>;

int64_t from_front(int64_t dimension, size_t rank) {
  return dimension < 0 ? dimension + static_cast<int64_t>(rank) : dimension;
}

/// To the shape of the result, with any batch.
void reshape(const Operation& op) {
  Integers shape = op.result_shape();
  shape.at(0) = -1;
  op.set_result(op.add("Reshape", {op.tensor(0), op.integers_constant(shape)}));
}

// flatten(input, start_dim, end_dim)
void flatten(const Operation& op) {
  const size_t rank = op.shape(0).size();
  const bool to_rows = from_front(op.integer(1), rank) == 1 && op.result_shape().size() == 2;
  if (!to_rows) return reshape(op);
  op.set_result(op.add("Flatten", {op.tensor(0)}, {{"axis", int64_t{1}}}));
}

// permute(input, dims)
void permute(const Operation& op) {
  Integers order = op.integers(1);
  for (int64_t& dimension : order) dimension = from_front(dimension, order.size());
  op.set_result(op.add("Transpose", {op.tensor(0)}, {{"perm", order}}));
}

// transpose(input, dim0, dim1)
void transpose(const Operation& op) {
  const size_t rank = op.shape(0).size();
  Integers order;
  for (size_t i = 0; i < rank; ++i) order.push_back(static_cast<int64_t>(i));
  std::swap(order.at(static_cast<size_t>(from_front(op.integer(1), rank))),
            order.at(static_cast<size_t>(from_front(op.integer(2), rank))));
  op.set_result(op.add("Transpose", {op.tensor(0)}, {{"perm", order}}));
}

// select(input, dim, index)
void select(const Operation& op) {
  const int64_t dimension = from_front(op.integer(1), op.shape(0).size());
  op.set_result(op.add("Gather", {op.tensor(0), op.integer_constant(op.integer(2))}, {{"axis", dimension}}));
}

std::string cut(const Operation& op, int64_t dimension, int64_t begin, int64_t end) {
  return op.add("Slice", {op.tensor(0), op.integers_constant({begin}), op.integers_constant({end}),
                          op.integers_constant({dimension})});
}

// narrow(input, dim, start, length)
void narrow(const Operation& op) {
  const int64_t dimension = from_front(op.integer(1), op.shape(0).size()), begin = op.integer(2);
  op.set_result(cut(op, dimension, begin, begin + op.integer(3)));
}

// slice(input, dim, start, end, step)
void slice(const Operation& op) {
  if (op.integer(4) != 1) op.refuse("slices with steps are not translated");
  const int64_t dimension = from_front(op.integer(1), op.shape(0).size());
  const int64_t begin = op.is_none(2) ? 0 : op.integer(2);
  op.set_result(cut(op, dimension, begin, begin + op.result_shape().at(static_cast<size_t>(dimension))));
}

// chunk(input, chunks, dim)
void chunk(const Operation& op) {
  const Integers shape = op.shape(0);
  const int64_t dimension = from_front(op.integer(2), shape.size()), chunks = op.integer(1);
  const int64_t whole = shape.at(static_cast<size_t>(dimension)), piece = (whole + chunks - 1) / chunks;
  std::vector<std::string> pieces;
  for (int64_t begin = 0; begin < whole; begin += piece) {
    pieces.push_back(cut(op, dimension, begin, std::min(whole, begin + piece)));
  }
  op.set_results(pieces);
}

// cat(tensors, dim)
void concatenate(const Operation& op) {
  op.set_result(op.add("Concat", op.tensors(0), {{"axis", from_front(op.integer(1), op.result_shape().size())}}));
}

// stack(tensors, dim)
void stack(const Operation& op) {
  const int64_t dimension = from_front(op.integer(1), op.result_shape().size());
  std::vector<std::string> pieces;
  for (const std::string& piece : op.tensors(0)) {
    pieces.push_back(op.add("Unsqueeze", {piece, op.integers_constant({dimension})}));
  }
  op.set_result(op.add("Concat", pieces, {{"axis", dimension}}));
}

/// other * 0 + input: readers differ in their support for computed shapes, but all of them broadcast.
// expand_as(input, other)
void expand_as(const Operation& op) {
  op.set_result(op.add("Add", {op.add("Mul", {op.tensor(1), op.number_constant(0)}), op.tensor(0)}));
}

// constant_pad_nd(input, pad, value): sides from the last to the first, before and after
void pad(const Operation& op) {
  const Integers sides = op.integers(1);
  const size_t rank = op.shape(0).size();
  Integers pads(2 * rank, 0);
  for (size_t i = 0; i + 1 < sides.size(); i += 2) {
    pads.at(rank - 1 - i / 2) = sides[i];
    pads.at(2 * rank - 1 - i / 2) = sides[i + 1];
  }
  op.set_result(op.add("Pad", {op.tensor(0), op.integers_constant(pads), op.number_constant(op.number(2))}));
}

// to(input, dtype, ...), and what changes nothing that ONNX represents
void convert(const Operation& op) {
  const at::ScalarType from = op.element(0);
  at::ScalarType to = from;
  if (op.argument_count() > 1 && op.is_number(1)) to = op.element_argument(1);
  if (op.argument_count() > 2 && !op.is_number(1) && op.is_number(2)) to = op.element_argument(2);  // after a device
  if (to == from) return op.set_result(op.tensor(0));
  if (to != at::kFloat) op.refuse("only conversions to float32 are translated");
  op.set_result(op.add("Cast", {op.tensor(0)}, {{"to", static_cast<int64_t>(OnnxType::float32)}}));
}

void same(const Operation& op) { op.set_result(op.tensor(0)); }

}  // namespace

void add_shape_translations(Translations& translations) {
  for (const char* kind : {"aten::reshape", "aten::view", "aten::unflatten", "aten::squeeze", "aten::unsqueeze"}) {
    translations[kind] = reshape;
  }
  translations["aten::flatten"] = flatten;
  translations["aten::permute"] = permute;
  translations["aten::transpose"] = transpose;
  translations["aten::select"] = select;
  translations["aten::narrow"] = narrow;
  translations["aten::slice"] = slice;
  translations["aten::chunk"] = chunk;
  translations["aten::cat"] = concatenate;
  translations["aten::stack"] = stack;
  translations["aten::expand_as"] = expand_as;
  translations["aten::constant_pad_nd"] = pad;
  translations["aten::to"] = convert;
  for (const char* kind : {"aten::contiguous", "aten::detach", "aten::alias"}) translations[kind] = same;
}

// Arithmetic of single numbers, and sums and maxima over dimensions.

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

/// relu(x) - relu(x - high), ReLU6: OpenCV 4.6 reads no Clip with bounds.
// hardtanh(input, low, high)
void hard_tanh(const Operation& op) {
  if (op.number(1) != 0) op.refuse("only bounds from 0 on are translated");
  const std::string x = op.tensor(0), over = op.add("Sub", {x, op.number_constant(op.number(2))});
  op.set_result(op.add("Sub", {op.add("Relu", {x}), op.add("Relu", {over})}));
}

// clamp_min(input, low)
void clamp_min(const Operation& op) { op.set_result(op.add("Max", {op.tensor(0), op.number_constant(op.number(1))})); }

// norm(input, p, dims, keepdim)
void norm(const Operation& op) {
  if (op.number(1) != 2) op.refuse("only Euclidean norms are translated");
  op.set_result(op.add("ReduceL2", {op.tensor(0)}, {{"axes", op.integers(2)}, {"keepdims", int64_t{op.flag(3)}}}));
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
  translations["aten::hardtanh"] = hard_tanh;
  translations["aten::clamp_min"] = clamp_min;
  translations["aten::norm"] = norm;
  translations["aten::silu"] = silu;
  translations["aten::hardsigmoid"] = hard_sigmoid;
  translations["aten::hardswish"] = hard_swish;
  translations["aten::gelu"] = gelu;
  translations["aten::softmax"] = softmax;
  translations["aten::mean"] = reduction("GlobalAveragePool", "ReduceMean");
  translations["aten::amax"] = reduction("GlobalMaxPool", "ReduceMax");
}

}  // namespace stoker::deploy
