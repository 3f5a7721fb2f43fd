// SPDX-License-Identifier: Apache-2.0
// What a file is, from its first bytes.
#pragma once

#include <string>

#include "data/storage/byte_view.h"

namespace stoker::data {

enum class ImageFormat { unknown, jpeg, png, bmp, webp, tiff, pnm, gif, jpeg2000 };

/// A format that is read, or unknown.
ImageFormat image_format(const ByteView& file);
/// Of a file of another kind: its name and the command that makes a picture of it. Never empty.
std::string unread_kind(const ByteView& file);
/// Whether these are the first bytes of a picture of any format, read or not. 32 bytes are enough.
bool is_picture(const ByteView& file);

}  // namespace stoker::data
