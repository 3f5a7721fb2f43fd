// SPDX-License-Identifier: Apache-2.0
#include "data/audit/thumbnail.h"

#include <algorithm>
#include <cmath>

namespace stoker::data {

Thumbnail thumbnail_of(const uint8_t* gray, int width, int height, ResampleScratch& scratch) {
  Thumbnail thumbnail;
  ResampleTask task;
  task.source = gray;
  task.source_stride = width;
  task.source_width = width;
  task.source_height = height;
  task.channels = 1;
  task.resized_width = task.resized_height = task.out_width = task.out_height = kThumbnailSide;
  resample(task, scratch, thumbnail.data());
  return thumbnail;
}

double contrast_of(const Thumbnail& thumbnail) {
  double sum = 0, squares = 0;
  for (const double value : thumbnail) {
    sum += value;
    squares += value * value;
  }
  const auto count = static_cast<double>(thumbnail.size());
  return std::sqrt(std::max(0.0, squares / count - sum / count * (sum / count)));
}

}  // namespace stoker::data
