// SPDX-License-Identifier: Apache-2.0
// A source of log-mel spectrograms of sounds, in front of the list of their files.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "config/options.h"
#include "data/source.h"
#include "data/storage/byte_reader.h"

namespace stoker::data {

/// Seconds of a sound.
struct SoundPart {
  double begin = 0, end = 0;  ///< end 0: that of the file
  bool is_whole() const { return begin <= 0 && end <= 0; }
};
/// "#1.5-3", as names of such samples end; empty: all of it.
std::string part_text(const SoundPart& part);

/// Where a sound lies.
struct SoundPlace {
  std::string path, copy;  ///< the copy is read where it can be; empty: there is none
  FileStamp stamp;         ///< size and modification time of the file
  SoundPart part = {};
  uint64_t first_byte = 0;             ///< position of the sound in the file
  std::optional<uint64_t> bytes = {};  ///< nothing: all of the file
  std::string problem = "";            ///< why there is no sound; empty: there is one
};

/// `place`: of sample `index` of `files`. Reads nothing. Throws Error{config} where the options do not go together.
std::shared_ptr<const Source> make_sound_source(std::shared_ptr<const Source> files,
                                                std::function<SoundPlace(int64_t index)> place,
                                                const config::SoundOptions& options);

}  // namespace stoker::data
