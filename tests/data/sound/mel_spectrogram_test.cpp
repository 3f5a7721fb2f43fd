// SPDX-License-Identifier: Apache-2.0
// Spectrograms against numbers of torchaudio 0.13.1.
#include "data/sound/mel_spectrogram.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

namespace stoker::data {
namespace {

/// Whole numbers from -50 to 50, over 64.
std::vector<float> made_wave(int64_t count) {
  std::vector<float> samples;
  for (int64_t i = 0; i < count; ++i) samples.push_back(static_cast<float>((i * i * 7 + i * 13) % 101 - 50) / 64);
  return samples;
}

config::SoundOptions sound_of_a_quarter() {
  config::SoundOptions options;
  options.sample_rate = 8000;
  options.n_fft = 200;
  options.hop = 80;
  options.mels = 20;
  options.seconds = 0.25;
  return options;
}

TEST(MelSpectrogramTest, HasTorchaudiosNumbers) {
  // MelSpectrogram(sample_rate=8000, n_fft=200, hop_length=80, n_mels=20)(x), AmplitudeToDB("power") of it
  struct Expected {
    int64_t mel, frame;
    double power, decibels;
  };
  constexpr Expected kOfTorchaudio[] = {
      {0, 0, 45.65634, 16.595},   {0, 1, 17.0634, 12.3207},   {0, 12, 16.07434, 12.0613},  {0, 25, 6.198985, 7.92321},
      {1, 0, 9.089757, 9.58552},  {1, 1, 16.1973, 12.0944},   {1, 12, 16.14161, 12.0795},  {1, 25, 8.317863, 9.20012},
      {3, 0, 93.40005, 19.7035},  {3, 1, 31.01654, 14.9159},  {3, 12, 28.95308, 14.6169},  {3, 25, 17.9878, 12.5498},
      {10, 0, 60.96524, 17.8508}, {10, 1, 67.93349, 18.3208}, {10, 12, 68.27198, 18.3424}, {10, 25, 43.13509, 16.3483},
      {19, 0, 160.5785, 22.0569}, {19, 1, 160.859, 22.0645},  {19, 12, 162.3501, 22.1045}, {19, 25, 120.6612, 20.8157}};
  const config::SoundOptions options = sound_of_a_quarter();
  ASSERT_EQ(options.frames(), 26);
  const MelSpectrogram spectrogram(options);
  MelSpectrogram::Scratch scratch;
  const std::vector<float> samples = made_wave(2000);
  std::vector<float> powers(20 * 26), decibels(20 * 26);
  spectrogram.powers(samples.data(), scratch, powers.data());
  spectrogram.decibels(samples.data(), scratch, decibels.data());
  for (const Expected& expected : kOfTorchaudio) {
    const auto at = static_cast<size_t>(expected.mel * 26 + expected.frame);
    EXPECT_NEAR(powers[at], expected.power, 1e-4 * expected.power) << expected.mel << " " << expected.frame;
    EXPECT_NEAR(decibels[at], expected.decibels, 1e-3) << expected.mel << " " << expected.frame;
  }
}

TEST(MelSpectrogramTest, EveryScaleNormAndWindowHasTorchaudiosNumbers) {
  using config::MelNorm;
  using config::MelScale;
  // MelSpectrogram(8000, n_fft, hop_length=80, n_mels=20, mel_scale=..., norm=...)(x) at bands 0, 3, 10 and 19
  struct Expected {
    MelScale scale;
    MelNorm norm;
    int64_t n_fft, frames;
    std::array<double, 12> powers;  ///< power of each band at the first frame, the twelfth and the last
  };
  const Expected all[] = {
      {MelScale::htk,
       MelNorm::slaney,
       200,
       26,
       {0.6560326, 0.2309709, 0.08907274, 1.022418, 0.3169395, 0.1969063, 0.3537506, 0.3961479, 0.2502912, 0.4119777,
        0.416523, 0.3095664}},
      {MelScale::slaney,
       MelNorm::none,
       200,
       26,
       {36.65884, 24.47508, 11.5386, 6.200774, 11.44704, 6.338827, 43.2179, 58.46776, 41.07131, 187.1247, 183.7416,
        132.8499}},
      {MelScale::slaney,
       MelNorm::slaney,
       200,
       26,
       {0.3283931, 0.2192498, 0.1033638, 0.05554707, 0.1025435, 0.05678376, 0.2961115, 0.4005972, 0.2814038, 0.4549349,
        0.44671, 0.3229827}},
      {MelScale::htk,
       MelNorm::none,
       201,
       25,
       {46.02483, 16.13168, 24.69634, 94.44934, 29.4586, 47.53123, 60.94525, 68.61437, 62.49228, 172.0761, 170.1705,
        154.8282}},
  };
  const std::vector<float> samples = made_wave(2000);
  for (const Expected& expected : all) {
    config::SoundOptions options = sound_of_a_quarter();
    options.mel_scale = expected.scale;
    options.mel_norm = expected.norm;
    options.n_fft = expected.n_fft;
    ASSERT_EQ(options.frames(), expected.frames);
    MelSpectrogram::Scratch scratch;
    std::vector<float> powers(static_cast<size_t>(20 * expected.frames));
    MelSpectrogram(options).powers(samples.data(), scratch, powers.data());
    size_t i = 0;
    for (const int64_t mel : {0, 3, 10, 19}) {
      for (const int64_t frame : {int64_t{0}, int64_t{12}, expected.frames - 1}) {
        const double wanted = expected.powers[i++];
        EXPECT_NEAR(powers[static_cast<size_t>(mel * expected.frames + frame)], wanted, 1e-4 * wanted)
            << &expected - all << " " << mel << " " << frame;
      }
    }
  }
}

TEST(MelSpectrogramTest, SilenceIsTheFloor) {
  const config::SoundOptions options = sound_of_a_quarter();
  MelSpectrogram::Scratch scratch;
  std::vector<float> decibels(20 * 26);
  MelSpectrogram(options).decibels(std::vector<float>(2000).data(), scratch, decibels.data());
  for (const float number : decibels) ASSERT_EQ(number, -100);
}

}  // namespace
}  // namespace stoker::data
