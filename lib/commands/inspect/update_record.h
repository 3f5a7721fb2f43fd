// SPDX-License-Identifier: Apache-2.0
// One update as it was computed: what the network saw, what each sample cost, and the gradient of each tensor.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "config/options.h"
#include "core/text/json.h"
#include "data/source.h"
#include "engine/step/update_step.h"
#include "engine/task/task.h"

namespace stoker::train {

struct SampleRecord {
  int64_t sample = 0;          ///< index in the training source
  int64_t label = -1;          ///< -1: there is none
  std::vector<float> targets;  ///< numbers to learn, or labels of a multilabel task
  int64_t mixed_with = -1;     ///< the sample whose image is mixed into this one; -1: none
  double loss = 0;             ///< as training counts it, both labels of a mixed image included
  bool is_finite = true;       ///< its image
  double largest = 0;          ///< absolute number of its image, as the network got it
  std::string image;           ///< digest of its image, as the network got it
};

struct BatchRecord {
  engine::Mix mix;
  std::vector<SampleRecord> samples;
  torch::Tensor images;  ///< float32 [B, ...] on the CPU, as the network got them
};

struct GradientRecord {
  std::string name;  ///< name of the parameter
  double norm = 0;   ///< L2, before clipping
};

/// Watches one update.
class UpdateRecorder : public engine::StepWatcher {
 public:
  /// `keeps_images`: BatchRecord::images; else only their digests.
  UpdateRecorder(const engine::Task& task, bool keeps_images) : task_(task), keeps_images_(keeps_images) {}

  void on_batch(const engine::SeenBatch& seen) override;
  void on_gradients(const engine::Learner& learner) override;

  const std::map<int64_t, BatchRecord>& batches() const { return batches_; }   ///< by number in the update
  const std::vector<GradientRecord>& gradients() const { return gradients_; }  ///< in the order of the network
  /// All samples in order.
  std::vector<SampleRecord> samples() const;
  double mean_loss() const;      ///< over samples; NaN: there were none
  double gradient_norm() const;  ///< L2 norm over all parameters together

 private:
  const engine::Task& task_;
  const bool keeps_images_;
  std::map<int64_t, BatchRecord> batches_;
  std::vector<GradientRecord> gradients_;
};

/// Gradient norms by layer: parameters whose names differ in their last part alone.
std::vector<GradientRecord> by_layer(const std::vector<GradientRecord>& gradients);

// A replayed update as files: each image as PNG, a contact sheet, exact numbers, and what was computed as JSON.

/// Name of a sample's class, or its targets, for people.
std::string truth_text(const SampleRecord& sample, const data::Source& source);

/// Samples, losses and gradients. Numbers that are not finite are null.
core::Json record_json(const UpdateRecorder& record, const data::Source& source);

/// Into `folder`: images/0000.png and so on in the order of the update (of clips each frame), sheet.png and
/// batch.safetensors (what the network got, float32). PNG has 8 bits: normalised pixels of pictures are turned back,
/// exactly unless they are mixed; of other samples the range of each is stretched over black to white. Samples with
/// other than 1 or 3 channels have no PNG. Returns the number of PNG files in images/. Throws core::Error.
int64_t write_images(const std::string& folder, const UpdateRecorder& record, const data::Source& source,
                     const config::ResolvedDataOptions& options);

}  // namespace stoker::train
