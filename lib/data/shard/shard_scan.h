// SPDX-License-Identifier: Apache-2.0
// The index of an archive, made by reading the archive once: for shards that came without one, and to check
// ours.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/image/decode.h"
#include "data/shard/shard_index.h"
#include "data/storage/byte_reader.h"
#include "data/storage/tree_walk.h"

namespace stoker::data {

/// Reads labels as shards state them: whole numbers, or names of known classes.
class ShardLabels {
 public:
  /// Without class names every label must be a number.
  explicit ShardLabels(const std::vector<std::string>& class_names);
  /// Text of a `.cls` member. Returns "" or what is wrong.
  std::string read_text(std::string_view text, int32_t& label) const;
  /// Text of a `.json` member: its "label", or nothing (-1) when there is none. Returns "" or what is wrong.
  std::string read_json(const std::string& text, int32_t& label) const;

 private:
  std::unordered_map<std::string, int32_t> by_name_;
};

/// Groups neighbours that share a key into samples, as WebDataset does. A sample is an image (where there are
/// several: jpg before jpeg, png, webp, bmp), else a sound, with the label of its `.cls`, else of its `.json`, else -1.
/// Members that are not part of a sample, and samples without either, go to `notes`. Digests stay empty. Throws
/// core::Error{data} for archives and labels that are damaged, core::StopRequested.
ShardIndex scan_shard(const ByteReader& shard, const ShardLabels& labels, ScanNotes& notes);

/// XXH3-128 of all bytes. Throws core::Error, core::StopRequested.
std::string digest_of(const ByteReader& bytes);

// How a sample is called inside a shard, after WebDataset's convention: the key is the path up to the first
// dot of the file name, what follows is the kind of content, and what shares a key belongs to one sample.
//
// A name such as `cat/001.jpg` keeps itself. A name that the convention would take apart wrongly, or that
// does not suit its content, becomes a key as a whole: dots and other bytes are written as %XX, and `%~` ends
// the key. `a.b.jpg` -> `a%2Eb%2Ejpg%~.jpg`. Both ways lead back to the original name.

/// A member's name, taken apart.
struct MemberName {
  std::string_view key;   ///< folders and file name up to its first dot; empty: no member of a sample
  std::string_view kind;  ///< behind that dot, as it stands: "jpg", "cls", "seg.png"
};
MemberName split_member(std::string_view member);

/// Whether a relative name can stand in an archive as it is: one dot in the file name, the extension of an
/// image or sound, no byte or part that tar or WebDataset would treat in a special way.
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
/// By extension, in any case of letters: the rank among kinds of images and sounds, smaller is preferred; kinds with a
/// dot, such as "seg.png", come last. -1: neither.
int image_kind_rank(std::string_view kind);

}  // namespace stoker::data
