// SPDX-License-Identifier: Apache-2.0
#include "engine/digest/tensor_digest.h"

#include "core/format.h"
#include "core/hash.h"
#include "engine/group/message.h"

namespace stoker::engine {
namespace {

void add_values(const torch::Tensor& values, core::Hasher& hasher) {
  const torch::Tensor plain = values.contiguous();
  hasher.add(plain.data_ptr(), static_cast<uint64_t>(plain.nbytes()));
}

void add_tensor(const torch::Tensor& tensor, core::Hasher& hasher) {
  const torch::Tensor values = tensor.detach().to(torch::kCPU);
  std::string head = core::format("{} {}:", static_cast<int>(values.scalar_type()), values.dim());
  for (const int64_t size : values.sizes()) head += core::format("{},", size);
  hasher.add(head);
  if (values.dim() == 0 || values.is_contiguous()) return add_values(values, hasher);
  for (int64_t row = 0; row < values.size(0); ++row) add_values(values[row], hasher);
}

}  // namespace

std::string tensor_digest(const torch::Tensor& tensor) {
  core::Hasher hasher;
  add_tensor(tensor, hasher);
  return hasher.hex();
}

std::string tensor_digest(const std::vector<model::NamedTensor>& tensors) {
  core::Hasher hasher;
  for (const model::NamedTensor& entry : tensors) {
    hasher.add(core::format("{} {} ", entry.name.size(), entry.name));
    add_tensor(entry.tensor, hasher);
  }
  return hasher.hex();
}

void ImageDigest::on_batch(const SeenBatch& seen) { batches_[seen.batch_in_window] = tensor_digest(seen.images); }

std::string ImageDigest::hex() const {
  core::Hasher hasher;
  for (const auto& [number, digest] : batches_) hasher.add(std::to_string(number) + ":" + digest + "\n");
  return hasher.hex();
}

std::string ImageDigest::message() const {
  MessageWriter message;
  for (const auto& [number, digest] : batches_) {
    message.add(number);
    message.add(digest);
  }
  return message.bytes();
}

void ImageDigest::add_message(const std::string& message) {
  for (MessageReader reader(message); !reader.at_end();) {
    const int64_t number = reader.i64();
    batches_[number] = reader.string();
  }
}

}  // namespace stoker::engine
