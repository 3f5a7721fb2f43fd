// SPDX-License-Identifier: Apache-2.0
// Finds for each tensor of a network what makes it, and adapts it. Changes nothing of the network.
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/image_model.h"
#include "weights/file/weight_file.h"
#include "weights/names/name_plan.h"

namespace stoker::weights {

// Tensors of LibTorch from a file of weights.

at::ScalarType torch_type(NumberType type);

/// Reads each storage at most once, when a tensor of it is first requested. Borrows the file.
class TensorReader {
 public:
  explicit TensorReader(const WeightFile& file) : file_(file) {}

  /// The tensor at a place of WeightFile::tensors: CPU, a view of its storage. Throws Error{data, io}.
  torch::Tensor read(size_t place);

 private:
  const WeightFile& file_;
  std::unordered_map<size_t, torch::Tensor> storages_;  // uint8 [bytes]
};

// How a tensor of one network becomes that of a similar one: other input channels, another image size, another epsilon.

/// Whether the shapes are the same but for sides of 1.
bool equal_without_ones(at::IntArrayRef one, at::IntArrayRef other);

/// The first convolution [O, I, h, w] for images of `channels`: to 1 the sum over I, which is what a gray image in all
/// channels gives; from 1 or 3 to more its channels over and over, scaled so that the sum stays (timm's rule, extended
/// to I = 1). Undefined where neither fits.
torch::Tensor adapt_input_channels(const torch::Tensor& weight, int64_t channels);

/// Position embeddings [1, 1 + n * n, E] of square images for a grid of `rows` x `columns` patches: the first stays,
/// the others are resampled bicubically with antialiasing, as timm's resample_abs_pos_embed(). Undefined where n is not
/// a whole number.
torch::Tensor resample_positions(const torch::Tensor& positions, int64_t rows, int64_t columns);

/// Weights of a batch norm with `ours` as epsilon that evaluates as `weight` [C] does with `theirs`, given its running
/// variance [C]: w sqrt((v + ours) / (v + theirs)).
torch::Tensor rescale_norm(const torch::Tensor& weight, const torch::Tensor& variance, double theirs, double ours);

/// The names of all tensors and of all that is opaque, by which a plan is made.
std::vector<GroupedName> names_in(const WeightFile& file);
std::vector<ObjectName> objects_in(const WeightFile& file);

/// A network, or the part of one, that takes weights of its own kind.
struct Recipient {
  model::ImageModel* network = nullptr;
  bool has_classifier = true;
};

/// The request for the classifier; see StartOptions.
struct HeadChoice {
  bool is_fresh = false;
  std::vector<int64_t> rows;
  int64_t classes = 0;  ///< number of classes of the file
};

struct Fitted {
  std::vector<std::pair<model::NamedTensor, torch::Tensor>> values;  ///< tensor of the network, its new value
  std::vector<std::string> fresh_shape, fresh_absent;  ///< tensors of the classifier: another shape there, not there
  std::vector<std::string> fresh_asked;                ///< tensors of the classifier: as in HeadChoice
  std::vector<std::string> fresh_classes;              ///< tensors of the classifier: no row is of a class of ours
  int64_t rows_kept = -1, rows = 0;                    ///< rows of the classifier, where they were chosen by name
  bool has_unnamed_head = false;                       ///< the classifier is that of a file that names no classes
  std::vector<std::string> changed;                    ///< what was done to which tensor
  std::vector<std::string> left_out;                   ///< tensors of a classifier that the network does not have
  std::vector<std::string> problems;                   ///< what is missing, does not fit, or is of another network
  std::vector<OpaqueEntry> unread;                     ///< what the network needs and comes out of an object

  bool is_whole() const { return problems.empty() && unread.empty(); }
};

/// `targets` are the tensors of the recipient under its own names.
Fitted fit(const Recipient& recipient, const std::vector<model::NamedTensor>& targets, const NamePlan& plan,
           const WeightFile& file, TensorReader& reader, const HeadChoice& head = {});

}  // namespace stoker::weights
