// SPDX-License-Identifier: Apache-2.0
#include "engine/digest/image_digest.h"

#include "core/hash.h"
#include "engine/digest/tensor_digest.h"
#include "engine/group/message.h"

namespace stoker::engine {

void ImageDigest::saw_batch(const SeenBatch& seen) { batches_[seen.batch_in_window] = tensor_digest(seen.images); }

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
    const int64_t number = reader.number();
    batches_[number] = reader.text();
  }
}

}  // namespace stoker::engine
