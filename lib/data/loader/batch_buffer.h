// SPDX-License-Identifier: Apache-2.0
// The memory of one batch in the loader's ring. Who may touch it when: see BatchBuffer.
#pragma once

#include <torch/types.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "data/sample_shape.h"

namespace stoker::data {

/// A row that holds no image: either the image is bad, or something broke that no batch can be made without.
struct RowError {
  int64_t row = 0;
  std::string reason;                ///< of a bad image
  std::optional<core::Error> error;  ///< anything else
};

/// A row whose image was damaged and repaired.
struct RowRepair {
  int64_t row = 0;
  std::string reason;
};

/// Between being freed and being ready its rows belong to the workers that hold their row indices, and its errors are
/// added while the loader's mutex is held; when it is ready, all of it belongs to the consumer.
struct BatchBuffer {
  torch::Tensor images;   ///< [batch_size, H, W, C] or [batch_size, T, H, W, C] of the shape's element; undefined
                          ///< until first used
  torch::Tensor labels;   ///< int64 [batch_size]
  torch::Tensor targets;  ///< float32 [batch_size, num_targets]
  uint8_t* image_rows = nullptr;  ///< row_bytes each
  int64_t* label_rows = nullptr;
  float* target_rows = nullptr;
  int64_t row_bytes = 0;
  int64_t num_targets = 0;
  std::vector<int64_t> samples;       ///< [batch_size] source indices
  std::vector<RowError> row_errors;   ///< in order of completion
  std::vector<RowRepair> repairs;     ///< in order of completion
  std::atomic<int64_t> rows_left{0};  ///< not yet written; the worker that takes it to 0 makes the buffer ready

  /// Page-locked if `pinned`. Throws Error{out_of_memory}.
  void allocate(int64_t batch_size, const SampleShape& shape, int64_t targets_per_sample, bool pinned);
  int64_t bytes() const;
  void sort_row_errors();
  /// Moves later rows over the failed ones, which are sorted; returns how many of the first `rows` rows are
  /// left.
  int64_t close_gaps(int64_t rows);
};

}  // namespace stoker::data
