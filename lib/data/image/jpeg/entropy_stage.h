// SPDX-License-Identifier: Apache-2.0
// Which Huffman stage this process decodes JPEGs with. Ours reads private structures of libjpeg-turbo, whose layout may
// differ between the headers of the build and the library that is loaded: it is tried before it is used.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "data/image/pixels/image_buffer.h"

namespace stoker::data {

/// The implementation that turns Huffman codes into coefficients. Pixels and verdicts do not depend on it.
enum class EntropyStage {
  automatic,  ///< ours where it passed its self-test in this process, else libjpeg's
  own,        ///< ours, untested
  libjpeg,
};

/// Decodes the pixels of `wanted` to RGB with the stage that is given, and with no other when that one gives up. On
/// return `wanted` is what `out` holds. Returns "" or the reason.
using StageDecoder =
    std::function<std::string(const std::vector<uint8_t>& jpeg, Region& wanted, ImageBuffer& out, EntropyStage stage)>;

/// Compares both stages on small images that are made here: colour at half and at full resolution, whole and cropped.
/// Returns "" when pixels are equal, else what differs, such as "48x16, 4:2:0, whole". Throws std::bad_alloc.
std::string difference_of_stages(const StageDecoder& decode);

/// The choice of EntropyStage::automatic.
class EntropyStageChoice {
 public:
  explicit EntropyStageChoice(StageDecoder decode) : decode_(std::move(decode)) {}
  /// `own` or `libjpeg`. The first call runs the self-test; where it fails, one warning goes to the log. Safe from any
  /// thread. Throws std::bad_alloc.
  EntropyStage get();

 private:
  const StageDecoder decode_;
  std::once_flag once_;
  EntropyStage stage_ = EntropyStage::libjpeg;
};

}  // namespace stoker::data
