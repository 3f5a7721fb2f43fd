// SPDX-License-Identifier: Apache-2.0
// How a sample is called inside a shard, after WebDataset's convention: the key is the path up to the first
// dot of the file name, what follows is the kind of content, and what shares a key belongs to one sample.
//
// A name such as `cat/001.jpg` keeps itself. A name that the convention would take apart wrongly, or that
// does not suit its content, becomes a key as a whole: dots and other bytes are written as %XX, and `%~` ends
// the key. `a.b.jpg` -> `a%2Eb%2Ejpg%~.jpg`. Both ways lead back to the original name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "data/image/decode.h"

namespace stoker::data {

/// A member's name, taken apart.
struct MemberName {
  std::string_view key;   ///< folders and file name up to its first dot; empty: no member of a sample
  std::string_view kind;  ///< behind that dot, as it stands: "jpg", "cls", "seg.png"
};
MemberName split_member(std::string_view member);

/// Whether a relative name can stand in an archive as it is: one dot in the file name, the extension of an
/// image, no byte or part that tar or WebDataset would treat in a special way.
bool is_plain_name(std::string_view relative_name);
/// Whether the extension of a plain name, in any case of letters, is one of this format's.
bool extension_fits(std::string_view relative_name, ImageFormat format);

/// The key of a plain name.
std::string plain_key(std::string_view relative_name);
/// A key made of a whole name; `copy` distinguishes samples of the same name (0: the first).
std::string whole_key(std::string_view relative_name, uint64_t copy);
/// "jpg", "png", "bmp", "webp".
const char* extension_of(ImageFormat format);

/// The relative name that a member of the image kind stands for.
std::string name_of_member(std::string_view member);
/// By extension, in any case of letters: the rank among kinds of images, smaller is preferred; kinds with a
/// dot, such as "seg.png", come last. -1: no image.
int image_kind_rank(std::string_view kind);

}  // namespace stoker::data
