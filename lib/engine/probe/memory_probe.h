// SPDX-License-Identifier: Apache-2.0
// The memory of an update and of an evaluation besides weights and optimizer state, measured on a few images of
// noise. Leaves what is trained as it was.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/memory/allocation_trace.h"
#include "engine/probe/probe_input.h"

namespace stoker::engine {

// How the memory that a device takes at most grows with images, from a few numbers of them. Torch-free.

struct PeakLine {
  TracedWork small, large;  ///< one block each: the peaks that the line goes through
  bool settled = false;     ///< more images follow the line; else they may take more than it predicts
};

/// Calls `peak_of` (bytes on `images` images) for growing numbers of images, twice each: the first time of a shape also
/// holds what libraries allocate once for it. A peak is the largest of several moments, each of which grows
/// linearly: for few images it may be the one when all gradients are there, whatever the images. So numbers are doubled
/// from `first` until two steps in a row have the same slope within 10 % and images make up at least half of the peak,
/// until `most` (at least `first`), or until memory runs out, which `is_too_much` distinguishes from other exceptions.
/// Where that leaves one number, half of it is tried, too; of 1 image that is 1 again. Throws what `peak_of` throws
/// where less than two numbers can be had.
PeakLine peak_line(const std::function<int64_t(int64_t images)>& peak_of, int64_t first, int64_t most,
                   const std::function<bool(const std::exception&)>& is_too_much);

/// Memory as a function of images. On the CPU from two traces each; on a device from two peaks.
struct ActivationModel {
  TracedWork train_small, train_large;  ///< one update's forward and backward, its gradients included
  TracedWork eval_small, eval_large;    ///< what evaluates a batch, without gradients
  int64_t input_bytes = 0;              ///< size of one image that was tried, its labels and targets included
  double seconds = 0;                   ///< that the probe took
  int64_t probe_side = 0;               ///< pixels; smaller than requested when those were too large to try
  double area_factor = 1;               ///< the area of an image that was requested, over that of the probe

  /// At most at once, the input included.
  int64_t training_bytes(int64_t images) const;
  int64_t evaluation_bytes(int64_t images) const;
  /// On the CPU: how far working memory grows in a run on such batches, inputs not included.
  int64_t working_bytes(const BatchSizes& batches) const;
};

/// Forward and backward on a few images twice, fewer of larger ones; forward alone on as many. Large images are first
/// estimated with smaller ones: where these show that 2 images cannot fit into `memory_bytes`, or would take longer
/// than some seconds, their figures are extended by the area. Buffers, gradients and random state are as before
/// afterwards. Throws Error{out_of_memory} when even 2 images do not fit.
ActivationModel probe_memory(Learner& learner, const Task& task, const ProbeSettings& settings);

/// For evaluation alone: the figures of training stay empty. Forward on a few images twice; images above 256 pixels are
/// predicted from small ones, by their area, as far as the network takes those. No more than `max_images` (1 or more)
/// of full size are tried at once. Throws what the network throws.
ActivationModel probe_evaluation_memory(model::ImageModel& model, const Task& task, torch::Device device,
                                        const ProbeSettings& settings, int64_t max_images);

/// Bytes of the parameters that are trained, and of all parameters and buffers.
int64_t gradient_bytes(const model::ImageModel& model);
int64_t state_bytes(const model::ImageModel& model);

}  // namespace stoker::engine
