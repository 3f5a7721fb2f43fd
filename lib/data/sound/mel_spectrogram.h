// SPDX-License-Identifier: Apache-2.0
// Log-mel spectrograms by the formulas of torchaudio: MelSpectrogram (Hann window, centred, reflected at both ends,
// power 2, 0 Hz to half of the rate, HTK's or Slaney's mels), then AmplitudeToDB without top_db.
#pragma once

#include <cstdint>
#include <opencv2/core.hpp>
#include <vector>

#include "config/options.h"

namespace stoker::data {

/// Immutable; safe from any thread.
class MelSpectrogram {
 public:
  /// Power below which a band counts as this much: -100 dB.
  static constexpr double kFloor = 1e-10;
  /// Buffers of one thread.
  struct Scratch {
    cv::Mat windows, spectra;  ///< [frames, n_fft]
    std::vector<double> power;
  };

  /// `options.samples()` above half of `options.n_fft`.
  explicit MelSpectrogram(const config::SoundOptions& options);
  /// `samples` [options.samples()] become powers `bands` [mels, frames].
  void powers(const float* samples, Scratch& scratch, float* bands) const;
  /// The same in decibels.
  void decibels(const float* samples, Scratch& scratch, float* bands) const;

 private:
  struct Band {
    int64_t first = 0;  ///< frequency
    std::vector<double> weights;
  };
  void load(const float* samples, int64_t frame, double* window) const;
  void add_frame(const std::vector<double>& power, int64_t frame, float* bands) const;

  const config::SoundOptions options_;
  std::vector<double> window_;
  std::vector<Band> bands_;
};

}  // namespace stoker::data
