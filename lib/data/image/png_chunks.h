// SPDX-License-Identifier: Apache-2.0
// The structure of a PNG file, checked before any of it reaches a decoder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stoker::data {

/// Copies the chunks that make pixels (IHDR, PLTE, tRNS, IDAT, IEND) to `kept`, so that text, profiles and
/// animation cannot change or slow the decode. Returns "" or the reason: cut short, or a chunk whose checksum
/// does not match.
std::string keep_pixel_chunks(const uint8_t* bytes, uint64_t size, std::vector<uint8_t>& kept);

}  // namespace stoker::data
