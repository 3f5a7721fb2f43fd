// SPDX-License-Identifier: Apache-2.0
// Excerpts of sound files as mono samples of one rate: WAV, FLAC, Ogg and MP3 through libsndfile, resampled by libsoxr.
// The only file that includes these.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "config/options.h"
#include "data/sound/sound_source.h"

struct soxr;

namespace stoker::data {

/// Buffers of one thread, and the resampler of the last rate.
struct SoundScratch {
  SoundScratch();
  ~SoundScratch();
  SoundScratch& operator=(SoundScratch&&) = delete;  // not copied, not moved

  bool checks_end = true;  ///< whether a file is cut short that is read; one that was whole is not checked again
  bool has_rest = false;   ///< the last sound is bad, but what it still holds was written
  std::vector<float> interleaved, mono, resampled;
  std::unique_ptr<soxr, void (*)(soxr*)> resampler;
  int64_t from = 0, to = 0;  ///< Hz, of the resampler
};

inline constexpr char kSoundsRead[] = "sounds are WAV, FLAC, Ogg or MP3 files";

/// Writes options.samples() numbers to `out`: the excerpt at `position` in [0, 1] among all of the place's part, mean
/// of its channels, at options.sample_rate; behind the end of a shorter one silence. Reads what the excerpt needs, by
/// seek. Returns "" or why the sound is bad: also where its header promises more than the file holds. Throws
/// core::Error{io} where the storage fails.
std::string read_sound(const SoundPlace& place, double position, const config::SoundOptions& options,
                       SoundScratch& scratch, float* out);

/// The length of a sound in seconds; negative where it cannot be read.
double sound_seconds(const SoundPlace& place);

}  // namespace stoker::data
