// SPDX-License-Identifier: Apache-2.0
#include "data/loader/batch_buffer.h"

#include <algorithm>
#include <cstring>

#include "core/format.h"

namespace stoker::data {
namespace {

torch::ScalarType dtype_of(Element element) {
  return element == Element::uint8 ? torch::kUInt8 : element == Element::float16 ? torch::kFloat16 : torch::kFloat32;
}

/// [batch_size, (frames,) height, width, channels]; with two views [batch_size, 2, frames, height, width, channels]
std::vector<int64_t> sizes_of(int64_t batch_size, const SampleShape& shape) {
  if (shape.views > 1) {
    return {batch_size, shape.views, shape.images() / shape.views, shape.height, shape.width, shape.channels};
  }
  if (shape.frames == 0) return {batch_size, shape.height, shape.width, shape.channels};
  return {batch_size, shape.frames, shape.height, shape.width, shape.channels};
}

}  // namespace

void BatchBuffer::allocate(int64_t batch_size, const SampleShape& shape, int64_t targets_per_sample, bool pinned) {
  row_bytes = shape.bytes();
  num_targets = targets_per_sample;
  const auto memory = torch::TensorOptions().device(torch::kCPU).pinned_memory(pinned);
  try {
    images = torch::empty(sizes_of(batch_size, shape), memory.dtype(dtype_of(shape.element)));
    labels = torch::empty({batch_size}, memory.dtype(torch::kInt64));
    targets = torch::empty({batch_size, num_targets}, memory.dtype(torch::kFloat32));
  } catch (const c10::Error& error) {
    const std::string cause = error.what_without_backtrace();
    if (pinned && cause.find("out of memory") == std::string::npos) {
      throw core::Error(core::ErrorKind::os, "page-locked memory cannot be had: " + cause.substr(0, cause.find('\n')),
                        "check the driver with nvidia-smi, or say --no-pin-memory");
    }
    throw core::Error(core::ErrorKind::out_of_memory,
                      core::format("cannot allocate {}{} for a batch of images",
                                   core::bytes_text(static_cast<double>(batch_size * row_bytes)),
                                   pinned ? " of page-locked memory" : ""),
                      "use a smaller --batch-size, --prefetch-factor or --img-size, or for clips fewer --clip-frames");
  }
  image_rows = static_cast<uint8_t*>(images.data_ptr());
  label_rows = labels.data_ptr<int64_t>();
  target_rows = targets.data_ptr<float>();
  samples.resize(static_cast<size_t>(batch_size));
}

int64_t BatchBuffer::bytes() const {
  return static_cast<int64_t>(samples.size()) *
         (row_bytes + int64_t{sizeof(int64_t)} + num_targets * int64_t{sizeof(float)});
}

void BatchBuffer::sort_row_errors() {
  std::sort(row_errors.begin(), row_errors.end(), [](const RowError& a, const RowError& b) { return a.row < b.row; });
  std::sort(repairs.begin(), repairs.end(), [](const RowRepair& a, const RowRepair& b) { return a.row < b.row; });
}

int64_t BatchBuffer::close_gaps(int64_t rows) {
  if (row_errors.empty()) return rows;
  int64_t kept = 0;
  auto gap = row_errors.begin();
  for (int64_t row = 0; row < rows; ++row) {
    if (gap != row_errors.end() && gap->row == row) {
      ++gap;
      continue;
    }
    if (kept != row) {
      std::memcpy(image_rows + kept * row_bytes, image_rows + row * row_bytes, static_cast<size_t>(row_bytes));
      label_rows[kept] = label_rows[row];
      std::copy_n(target_rows + row * num_targets, num_targets, target_rows + kept * num_targets);
      samples[static_cast<size_t>(kept)] = samples[static_cast<size_t>(row)];
    }
    ++kept;
  }
  return kept;
}

}  // namespace stoker::data
