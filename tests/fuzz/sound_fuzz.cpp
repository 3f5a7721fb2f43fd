// SPDX-License-Identifier: Apache-2.0
// Bytes as a sound file: our use of libsndfile and libsoxr, which are not instrumented, and the spectrogram.
#include <cmath>
#include <cstring>
#include <vector>

#include "data/sound/mel_spectrogram.h"
#include "data/sound/sound_file.h"
#include "data/storage/byte_reader.h"
#include "data/storage/tree_walk.h"
#include "fuzz_target.h"

using namespace stoker;
using namespace stoker::data;

namespace {

constexpr float kUntouched = 12345;

config::SoundOptions options_for(fuzz::Choices& choices) {
  config::SoundOptions options;
  constexpr int64_t kRates[] = {8000, 11025, 16000, 44100};
  options.sample_rate = kRates[choices.below(4)];
  options.n_fft = 200;
  options.mels = 20;
  options.seconds = choices.one_in(4) ? 0.5 : 0.05;
  return options;
}

}  // namespace

/// libsndfile does not give back the header of an Ogg file that it refuses.
extern "C" const char* __lsan_default_suppressions() { return "leak:vorbis_info_init\n"; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static fuzz::MemoryFile file, archive;
  static SoundScratch scratch;
  static MelSpectrogram::Scratch mel_scratch;
  fuzz::Choices choices(bytes, size);
  const config::SoundOptions options = options_for(choices);
  const double position = static_cast<double>(choices.below(5)) / 4;
  SoundPart part;
  if (choices.one_in(4)) part = {static_cast<double>(choices.below(100)) / 100, static_cast<double>(choices.below(2))};
  file.fill(bytes, size);
  const SoundPlace place{file.path(), "", stamp_of(file.path()), part};

  const auto count = static_cast<size_t>(options.samples());
  std::vector<float> samples(count + 1, kUntouched);
  const std::string cause = read_sound(place, position, options, scratch, samples.data());
  FUZZ_CHECK(samples.back() == kUntouched);  // nothing is written behind the excerpt
  FUZZ_CHECK(cause.empty() ? sound_seconds(place) > 0 : cause.size() < 1000);

  // The same sound in an archive, after any other: the same answer.
  std::vector<uint8_t> members(512 + size + 1000, 0x5A);
  if (size > 0) std::memcpy(members.data() + 512, bytes, size);
  archive.fill(members.data(), members.size());
  SoundPlace inside{archive.path(), "", stamp_of(archive.path()), part};
  inside.first_byte = 512;
  inside.bytes = size;
  std::vector<float> again(count + 1, kUntouched);
  FUZZ_CHECK(read_sound(inside, position, options, scratch, again.data()) == cause);
  if (!cause.empty()) return 0;
  FUZZ_CHECK(std::memcmp(samples.data(), again.data(), count * sizeof(float)) == 0);
  std::vector<float> bands(static_cast<size_t>(options.mels * options.frames()));
  MelSpectrogram(options).decibels(samples.data(), mel_scratch, bands.data());
  for (const float number : bands) FUZZ_CHECK(number >= -100 && !std::isnan(number));
  return 0;
}
