// SPDX-License-Identifier: Apache-2.0
// JPEG through libjpeg-turbo itself: exact settings, every warning seen, scans counted. Pixels come as
// stored; EXIF is somebody else's.
#pragma once

#include <cstdint>
#include <string>

#include "data/image/jpeg/entropy_stage.h"
#include "data/image/pixels/image_buffer.h"

namespace stoker::data {

/// Decodes with the accurate integer transform and smooth chroma upsampling to `channels` (1 or 3). The size
/// has been checked by read_header(). `wanted` lies inside the image as stored; `rows` receives what is decoded: the
/// same or more. The requested part is bit for bit the pixels of a whole decode; the rim around it need not
/// be, since smooth upsampling lacks its neighbours there. Rows below are not looked at, except
/// that the file must have its end marker. Returns "" or the reason; a warning of the decoder is a reason.
/// Throws std::bad_alloc, and Error{data} when the time limit is over: how long a decode takes is not a property
/// of the image alone, so that it must not be skipped like a bad one.
std::string decode_jpeg(const uint8_t* bytes, uint64_t size, int channels, const DecodeLimits& limits,
                        const Region& wanted, RowSink& rows, EntropyStage stage = EntropyStage::automatic);

/// As decode_jpeg() for rows, into `out`; on return, good or not, `wanted` is what that holds.
std::string decode_jpeg(const uint8_t* bytes, uint64_t size, int channels, const DecodeLimits& limits, Region& wanted,
                        ImageBuffer& out, EntropyStage stage = EntropyStage::automatic);

}  // namespace stoker::data
