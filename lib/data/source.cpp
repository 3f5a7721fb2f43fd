// SPDX-License-Identifier: Apache-2.0
#include "data/source.h"

namespace stoker::data {

int64_t stored_bytes(const Source& source, int64_t index) {
  const StoredSamples* const stored = source.stored();
  return stored == nullptr ? -1 : stored->stored_bytes(index);
}

std::string read_head(const Source& source, int64_t index, int64_t bytes, std::vector<uint8_t>& buffer,
                      SampleContent& content) {
  const StoredSamples* const stored = source.stored();
  return stored == nullptr ? source.read(index, buffer, content) : stored->read_head(index, bytes, buffer, content);
}

std::vector<int64_t> run_ends(const Source& source) {
  const StoredSamples* const stored = source.stored();
  return stored == nullptr ? std::vector<int64_t>{source.size()} : stored->run_ends();
}

bool holds_videos(const Source& source) { return source.frames() != nullptr; }

ItemWord item_word(const Source& source) {
  const SampleShape shape = source.fixed_shape();
  if (shape.images() > 1) return {"a clip", "clips"};
  return shape.height > 0 ? ItemWord{"a sample", "samples"} : ItemWord{"an image", "images"};
}

bool holds_pixels(const Source& source) {
  std::vector<uint8_t> buffer;
  SampleContent content;
  return source.size() > 0 && read_head(source, 0, 1, buffer, content).empty() && content.is_pixels();
}

}  // namespace stoker::data
