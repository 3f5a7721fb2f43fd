// SPDX-License-Identifier: Apache-2.0
// Made sounds as WAV files of every kind.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace stoker::data {

/// The numbers of a WAV file.
enum class WavKind { uint8 = 1, int16 = 2, int24 = 3, int32 = 4, float32 = 5 };

/// Little-endian.
inline std::string wav_bytes(uint64_t value, int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
  return bytes;
}

/// `samples` in [-1, 1), of `channels` in turn. `claimed`: bytes of sound in the header; -1: as many as there are.
inline std::string wav_of(const std::vector<float>& samples, int rate, int channels = 1, WavKind kind = WavKind::int16,
                          int64_t claimed = -1) {
  const int width = kind == WavKind::float32 ? 4 : static_cast<int>(kind);
  std::string sound;
  for (const float sample : samples) {
    uint64_t bits = 0;
    if (kind == WavKind::float32) {
      uint32_t word = 0;
      std::memcpy(&word, &sample, sizeof word);
      bits = word;
    } else {
      const auto whole = std::llround(std::ldexp(static_cast<double>(sample), 8 * width - 1));
      bits = static_cast<uint64_t>(kind == WavKind::uint8 ? whole + 128 : whole);
    }
    sound += wav_bytes(bits, width);
  }
  const uint64_t size = claimed < 0 ? sound.size() : static_cast<uint64_t>(claimed);
  const auto frame = static_cast<uint64_t>(channels * width);
  return "RIFF" + wav_bytes(36 + size, 4) + "WAVEfmt " + wav_bytes(16, 4) +
         wav_bytes(kind == WavKind::float32 ? 3 : 1, 2) + wav_bytes(static_cast<uint64_t>(channels), 2) +
         wav_bytes(static_cast<uint64_t>(rate), 4) + wav_bytes(static_cast<uint64_t>(rate) * frame, 4) +
         wav_bytes(frame, 2) + wav_bytes(static_cast<uint64_t>(8 * width), 2) + "data" + wav_bytes(size, 4) + sound;
}

/// A tone with an overtone.
inline std::vector<float> tone_of(double hertz, double seconds, int rate) {
  std::vector<float> samples;
  for (int64_t i = 0; i < std::llround(seconds * rate); ++i) {
    const double angle = 6.283185307179586 * hertz * static_cast<double>(i) / rate;
    samples.push_back(static_cast<float>(0.4 * std::sin(angle) + 0.2 * std::sin(2 * angle + 1)));
  }
  return samples;
}

}  // namespace stoker::data
