// SPDX-License-Identifier: Apache-2.0
// A sample as a small JPEG, for a page.
#pragma once

#include <cstdint>
#include <string>

#include "data/image/decode.h"
#include "data/source.h"

namespace stoker::train {

/// Base64 of a JPEG whose longer side has at most 112 pixels, in the picture's own shape; of a video the frame in the
/// middle; of other numbers as data::picture_of() draws them. "" for samples that cannot be read.
std::string sample_picture(const data::Source& source, int64_t index, const data::DecodeLimits& limits);

}  // namespace stoker::train
