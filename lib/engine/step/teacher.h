// SPDX-License-Identifier: Apache-2.0
// A network that another one learns from: Hinton et al., "Distilling the Knowledge in a Neural Network", 2015.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "data/feed/device_feed.h"
#include "model/image_model.h"

namespace stoker::engine {

struct TeacherSettings {
  double share = 0.9;         ///< share of the teacher's term in the loss
  double temperature = 4;     ///< by which both networks' outputs are divided
  std::vector<int64_t> rows;  ///< the teacher's output of each class; empty: they have one order
  /// Per channel, from images as the student sees them to those that the teacher was trained on; undefined: the same.
  torch::Tensor scale, offset;  // float32 [C, 1, 1]
};

/// Holds still: in evaluation mode, without gradients. On the device of the student.
class Teacher {
 public:
  Teacher(std::shared_ptr<model::ImageModel> network, const TeacherSettings& settings);

  /// From now on outputs for samples are read from `outputs`, float32 [samples of the source, classes], in any memory.
  /// For images that never change.
  void keep(const torch::Tensor& outputs);
  bool keeps() const { return kept_.defined(); }
  /// The kept outputs for the samples of a batch, on the device; undefined where none are kept, or it has none.
  torch::Tensor kept(const data::Batch& batch) const;

  /// Logits [B, classes] in the order of the student's classes, in the precision of the scope. images: as the student
  /// sees them, mixed ones, too.
  torch::Tensor outputs(const torch::Tensor& images) const;
  /// The sum that is minimised: (1 - share) of `own_loss`, the sum over the batch without a teacher, and share of the
  /// divergence of `outputs`, the student's, from `taught`. float32 [].
  torch::Tensor loss_sum(const torch::Tensor& own_loss, const torch::Tensor& outputs,
                         const torch::Tensor& taught) const;
  /// It, as outputs() sees it.
  model::ImageModel& network() const { return *network_; }

 private:
  std::shared_ptr<model::ImageModel> network_;
  const double share_, temperature_;
  torch::Tensor kept_;
};

}  // namespace stoker::engine
