// SPDX-License-Identifier: Apache-2.0
// A trained network with the boundary that its export has: which images it takes, what it gives.
#pragma once

#include <torch/types.h>

#include <memory>
#include <string>

#include "config/preprocess/preprocessing.h"
#include "engine/task/task.h"
#include "model/image_model.h"

namespace stoker::train {

struct ExportBoundary {
  bool bytes_in = false;         ///< uint8 [B, H, W, C]; else normalised float32 [B, C, H, W]. Clips: T after B
  bool predictions_out = false;  ///< those of Task::predictions(); else raw outputs
};

class ExportedNetwork {
 public:
  /// `model`: float32, on the CPU, in evaluation mode. Throws Error{config} for bytes of samples that are floats.
  ExportedNetwork(std::shared_ptr<model::ImageModel> model, std::shared_ptr<engine::Task> task,
                  config::Preprocessing record, ExportBoundary boundary);

  const model::ImageModel& model() const { return *model_; }
  std::string input_name() const { return "images"; }
  std::string output_name() const;
  /// For people: what the input and the output are.
  std::string input_description() const;
  std::string output_description() const;

  /// As it is exported: from an input as input_of() gives it.
  torch::Tensor forward(const torch::Tensor& input) const;
  /// From the run's normalised images, float32 [B, C, H, W], to what the exported network takes of them.
  torch::Tensor input_of(const torch::Tensor& normalised) const;
  /// Outputs of this program for normalised images, with the exported network's boundary: float32 [B, outputs].
  torch::Tensor expected(const torch::Tensor& normalised) const;
  /// The predictions that outputs mean, whatever the threshold.
  torch::Tensor predictions_of(const torch::Tensor& output) const;
  /// `count` made-up samples, the same ones in each call: normalised.
  torch::Tensor made_up(int64_t count) const;

 private:
  torch::Tensor with_predictions(const torch::Tensor& outputs) const;

  std::shared_ptr<model::ImageModel> model_;
  std::shared_ptr<engine::Task> task_;
  config::Preprocessing record_;
  ExportBoundary boundary_;
  torch::Tensor mean_, deviation_;  ///< float64 [C, 1, 1]
  torch::Tensor scale_, offset_;    ///< float32 [1, C, 1, 1]: byte * scale + offset is a normalised number
};

}  // namespace stoker::train
