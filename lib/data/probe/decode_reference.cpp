// SPDX-License-Identifier: Apache-2.0
#include "data/probe/decode_reference.h"

#include <algorithm>
#include <chrono>

#include "core/system/stop_signal.h"
#include "core/time/elapsed.h"
#include "data/image/jpeg/jpeg_decode.h"

namespace stoker::data {

DecodeReference::DecodeReference(const Source& source, int channels, const DecodeLimits& limits, int64_t max_images,
                                 int64_t max_bytes)
    : channels_(channels), limits_(limits) {
  const int64_t wanted = std::min(source.size(), max_images);
  std::vector<uint8_t> buffer;
  for (int64_t i = 0; i < wanted && bytes_ < max_bytes; ++i) {
    core::throw_if_stopped();
    SampleContent content;
    if (!source.read(i * source.size() / wanted, buffer, content).empty() || content.is_pixels()) continue;
    std::vector<uint8_t> file(content.bytes, content.bytes + content.size);
    if (!decode(file).empty()) continue;
    bytes_ += static_cast<int64_t>(content.size);
    megapixels_ += 1e-6 * image_.width * image_.height;
    files_.push_back(std::move(file));
  }
}

std::string DecodeReference::decode(const std::vector<uint8_t>& file) {
  ImageHeader header;
  std::string reason = read_header(file.data(), file.size(), limits_, header);
  if (!reason.empty()) return reason;
  Region whole{0, 0, header.width, header.height};
  if (header.format != ImageFormat::jpeg || header.orientation != 1) {
    return decode_region(file.data(), file.size(), channels_, limits_, header, whole, image_);
  }
  return decode_jpeg(file.data(), file.size(), channels_, limits_, whole, image_, EntropyStage::libjpeg);
}

double DecodeReference::decode_all() {
  const auto begin = std::chrono::steady_clock::now();
  for (const std::vector<uint8_t>& file : files_) {
    core::throw_if_stopped();
    decode(file);
  }
  return core::seconds_since(begin);
}

}  // namespace stoker::data
