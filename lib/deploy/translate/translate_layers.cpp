// SPDX-License-Identifier: Apache-2.0
// Layers with weights, and pooling.
#include <cmath>

#include "deploy/translate/translator.h"

namespace stoker::deploy {
namespace {

using Integers = std::vector<int64_t>;

/// An argument that stands for both sides, or for one each.
Integers sides(const Operation& op, size_t argument) {
  Integers values = op.integers(argument);
  if (values.size() == 1) values.push_back(values[0]);
  return values;
}

/// As ONNX counts them: what is added before each side, then after.
Integers pads(const Integers& padding) { return {padding.at(0), padding.at(1), padding.at(0), padding.at(1)}; }

// _convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, ...)
void convolution(const Operation& op) {
  if (op.flag(6)) op.refuse("transposed convolutions are not translated");
  const Integers weight = op.shape(1);
  if (weight.size() != 4) op.refuse("only convolutions of images are translated");
  std::vector<std::string> inputs = {op.tensor(0), op.tensor(1)};
  if (!op.is_none(2)) inputs.push_back(op.tensor(2));
  op.set_result(op.add("Conv", inputs,
                       {{"kernel_shape", Integers{weight[2], weight[3]}},
                        {"strides", sides(op, 3)},
                        {"pads", pads(sides(op, 4))},
                        {"dilations", sides(op, 5)},
                        {"group", op.integer(8)}}));
}

// batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled)
void batch_norm(const Operation& op) {
  if (op.flag(5)) op.refuse("the network is in training mode");
  op.set_result(op.add("BatchNormalization", {op.tensor(0), op.tensor(1), op.tensor(2), op.tensor(3), op.tensor(4)},
                       {{"epsilon", static_cast<float>(op.number(7))}}));
}

/// (x - mean) / sqrt(variance + eps) over the last dimension. In single steps, since LayerNormalization came with opset
/// 17, which older readers do not support.
std::string standardised(const Operation& op, const std::string& x, double eps) {
  const std::vector<OnnxAttribute> over_last = {{"axes", Integers{-1}}, {"keepdims", int64_t{1}}};
  const std::string centered = op.add("Sub", {x, op.add("ReduceMean", {x}, over_last)});
  const std::string variance = op.add("ReduceMean", {op.add("Mul", {centered, centered})}, over_last);
  const std::string deviation = op.add("Sqrt", {op.add("Add", {variance, op.number_constant(eps)})});
  return op.add("Div", {centered, deviation});
}

/// Ba et al. 2016.
// layer_norm(input, normalized_shape, weight, bias, eps, cudnn_enable)
void layer_norm(const Operation& op) {
  if (op.integers(1).size() != 1) op.refuse("only norms over the last dimension are translated");
  std::string y = standardised(op, op.tensor(0), op.number(4));
  if (!op.is_none(2)) y = op.add("Mul", {y, op.tensor(2)});
  if (!op.is_none(3)) y = op.add("Add", {y, op.tensor(3)});
  op.set_result(y);
}

/// Wu and He 2018: each group of channels of an image is standardised.
// group_norm(input, num_groups, weight, bias, eps, cudnn_enabled)
void group_norm(const Operation& op) {
  const Integers shape = op.shape(0);
  const std::string groups = op.add("Reshape", {op.tensor(0), op.integers_constant({0, op.integer(1), -1})});
  Integers whole = shape;
  whole.at(0) = 0;  // as it is
  std::string y = op.add("Reshape", {standardised(op, groups, op.number(4)), op.integers_constant(whole)});
  Integers per_channel(shape.size(), 1);
  per_channel.at(1) = shape.at(1);
  for (const size_t argument : {2, 3}) {
    if (op.is_none(argument)) continue;
    const torch::Tensor values = op.constant(argument);
    if (!values.defined()) op.refuse("its weights are computed");
    y = op.add(argument == 2 ? "Mul" : "Add",
               {y, op.tensor_constant(values.view(per_channel), op.constant_name(argument))});
  }
  op.set_result(y);
}

/// Dropout changes nothing in evaluation.
// dropout(input, p, train)
void dropout(const Operation& op) {
  if (op.flag(2)) op.refuse("the network is in training mode");
  op.set_result(op.tensor(0));
}

/// x times a weight [out, in], plus a bias ("": none). For a matrix x as PyTorch's own exporter writes it: OpenCV 4.6
/// reads Gemm with transB alone.
std::string matrix_product(const Operation& op, const std::string& x, size_t x_rank, const torch::Tensor& weight,
                           const std::string& name, const std::string& bias) {
  if (x_rank == 2) {
    std::vector<std::string> inputs = {x, op.tensor_constant(weight, name)};
    if (!bias.empty()) inputs.push_back(bias);
    return op.add("Gemm", inputs, {{"alpha", 1.0F}, {"beta", 1.0F}, {"transB", int64_t{1}}});
  }
  const std::string product = op.add("MatMul", {x, op.tensor_constant(weight.t(), name)});
  return bias.empty() ? product : op.add("Add", {product, bias});
}

// linear(input, weight, bias)
void linear(const Operation& op) {
  const torch::Tensor weight = op.constant(1);
  if (!weight.defined()) op.refuse("its weight is computed");
  op.set_result(matrix_product(op, op.tensor(0), op.shape(0).size(), weight, op.constant_name(1),
                               op.is_none(2) ? "" : op.tensor(2)));
}

// addmm(bias, input, matrix, beta, alpha)
void addmm(const Operation& op) {
  const torch::Tensor matrix = op.constant(2);
  if (!matrix.defined() || op.number(3) != 1 || op.number(4) != 1) op.refuse("not the product of a linear layer");
  op.set_result(matrix_product(op, op.tensor(1), 2, matrix.t(), op.constant_name(2), op.tensor(0)));
}

// matmul(a, b)
void matmul(const Operation& op) { op.set_result(op.add("MatMul", {op.tensor(0), op.tensor(1)})); }

// t(matrix)
void transposed_matrix(const Operation& op) {
  const torch::Tensor matrix = op.constant(0);
  if (matrix.defined()) return op.set_constant(matrix.t(), op.constant_name(0));
  op.set_result(op.add("Transpose", {op.tensor(0)}, {{"perm", Integers{1, 0}}}));
}

// scaled_dot_product_attention(q, k, v, mask, dropout, causal, scale...)
void attention(const Operation& op) {
  if (!op.is_none(3) || op.flag(5)) op.refuse("attention with a mask is not translated");
  const Integers shape = op.shape(1);
  Integers swapped;
  for (size_t i = 0; i < shape.size(); ++i) swapped.push_back(static_cast<int64_t>(i));
  std::swap(swapped.at(swapped.size() - 1), swapped.at(swapped.size() - 2));
  const double scale = 1 / std::sqrt(static_cast<double>(shape.back()));
  const std::string q = op.add("Mul", {op.tensor(0), op.number_constant(scale)});
  const std::string k = op.add("Transpose", {op.tensor(1)}, {{"perm", swapped}});
  const std::string weights = op.add("Softmax", {op.add("MatMul", {q, k})}, {{"axis", int64_t{-1}}});
  op.set_result(op.add("MatMul", {weights, op.tensor(2)}));
}

// max_pool2d(input, kernel, stride, padding, dilation, ceil_mode)
void max_pool(const Operation& op) {
  if (sides(op, 4) != Integers{1, 1}) op.refuse("dilated pooling is not translated");
  const Integers kernel = sides(op, 1);
  op.set_result(op.add("MaxPool", {op.tensor(0)},
                       {{"kernel_shape", kernel},
                        {"strides", op.integers(2).empty() ? kernel : sides(op, 2)},
                        {"pads", pads(sides(op, 3))},
                        {"ceil_mode", int64_t{op.flag(5)}}}));
}

// avg_pool2d(input, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override)
void average_pool(const Operation& op) {
  if (!op.is_none(6)) op.refuse("another divisor is not translated");
  const Integers kernel = sides(op, 1);
  op.set_result(op.add("AveragePool", {op.tensor(0)},
                       {{"kernel_shape", kernel},
                        {"strides", op.integers(2).empty() ? kernel : sides(op, 2)},
                        {"pads", pads(sides(op, 3))},
                        {"ceil_mode", int64_t{op.flag(4)}},
                        {"count_include_pad", int64_t{op.flag(5)}}}));
}

/// Where cells do not divide the map, each is cut out by itself, from the floor of where it begins to the ceiling of
/// its end.
std::string cell_means(const Operation& op, const Integers& map, const Integers& cells) {
  std::vector<std::string> rows;
  for (int64_t row = 0; row < cells[0]; ++row) {
    std::vector<std::string> means;
    for (int64_t column = 0; column < cells[1]; ++column) {
      const auto begin = [&](size_t side, int64_t at) { return at * map[side] / cells[side]; };
      const auto end = [&](size_t side, int64_t at) { return ((at + 1) * map[side] + cells[side] - 1) / cells[side]; };
      const std::string cell =
          op.add("Slice", {op.tensor(0), op.integers_constant({begin(0, row), begin(1, column)}),
                           op.integers_constant({end(0, row), end(1, column)}), op.integers_constant({2, 3})});
      means.push_back(op.add("GlobalAveragePool", {cell}));  // [B, C, 1, 1]
    }
    rows.push_back(means.size() == 1 ? means[0] : op.add("Concat", means, {{"axis", int64_t{3}}}));
  }
  return rows.size() == 1 ? rows[0] : op.add("Concat", rows, {{"axis", int64_t{2}}});
}

// adaptive_avg_pool2d(input, output_size)
void adaptive_average_pool(const Operation& op) {
  const Integers shape = op.shape(0), cells = sides(op, 1);
  if (shape.size() != 4) op.refuse("only maps of images are translated");
  const Integers map = {shape[2], shape[3]};
  if (cells == Integers{1, 1}) return op.set_result(op.add("GlobalAveragePool", {op.tensor(0)}));
  if (cells == map) return op.set_result(op.tensor(0));
  if (map[0] % cells[0] != 0 || map[1] % cells[1] != 0) return op.set_result(cell_means(op, map, cells));
  const Integers cell = {map[0] / cells[0], map[1] / cells[1]};
  op.set_result(op.add("AveragePool", {op.tensor(0)}, {{"kernel_shape", cell}, {"strides", cell}}));
}

// upsample_bilinear2d(input, output_size, align_corners, ...)
void bilinear(const Operation& op) {
  if (op.flag(2)) op.refuse("aligned corners are not translated");
  const Integers from = op.shape(0), to = op.result_shape();
  const auto factor = [&](size_t side) { return static_cast<double>(to[side]) / static_cast<double>(from[side]); };
  op.set_result(
      op.add("Resize", {op.tensor(0), "", op.numbers_constant({1, 1, factor(2), factor(3)})},
             {{"mode", std::string("linear")}, {"coordinate_transformation_mode", std::string("half_pixel")}}));
}

}  // namespace

void add_layer_translations(Translations& translations) {
  translations["aten::_convolution"] = convolution;
  translations["aten::batch_norm"] = batch_norm;
  translations["aten::layer_norm"] = layer_norm;
  translations["aten::group_norm"] = group_norm;
  translations["aten::dropout"] = dropout;
  translations["aten::dropout_"] = dropout;
  translations["aten::feature_dropout"] = dropout;
  translations["aten::linear"] = linear;
  translations["aten::addmm"] = addmm;
  translations["aten::matmul"] = matmul;
  translations["aten::t"] = transposed_matrix;
  translations["aten::scaled_dot_product_attention"] = attention;
  translations["aten::max_pool2d"] = max_pool;
  translations["aten::avg_pool2d"] = average_pool;
  translations["aten::adaptive_avg_pool2d"] = adaptive_average_pool;
  translations["aten::upsample_bilinear2d"] = bilinear;
}

}  // namespace stoker::deploy
