// SPDX-License-Identifier: Apache-2.0
// Log-mel spectrograms by the formulas of torchaudio: MelSpectrogram (Hann window, centred, reflected at both ends,
// power 2, 0 Hz to half of the rate, HTK's or Slaney's mels), then AmplitudeToDB without top_db.
#pragma once

#include <cstdint>
#include <vector>

#include "config/options.h"

namespace stoker::data {

/// Discrete Fourier transforms of one length, a product of small primes.
class FourierTransform {
 public:
  struct Number {
    double re = 0, im = 0;
  };
  /// The largest prime factor that a length may have.
  static constexpr int64_t kLargestFactor = 61;

  explicit FourierTransform(int64_t size);
  int64_t size() const { return size_; }
  /// [size] each; not in place.
  void run(const Number* in, Number* out) const { part(in, out, size_, 1, 0); }

 private:
  void part(const Number* in, Number* out, int64_t size, int64_t stride, size_t depth) const;
  void join(Number* out, int64_t factor, int64_t length, int64_t stride) const;

  int64_t size_;
  std::vector<int64_t> factors_;
  std::vector<Number> roots_;  ///< exp(-2 pi i k / size)
};

/// The largest prime factor of a number from 2 on.
int64_t largest_factor(int64_t number);

/// Immutable; safe from any thread.
class MelSpectrogram {
 public:
  /// Power below which a band counts as this much: -100 dB.
  static constexpr double kFloor = 1e-10;
  /// Buffers of one thread.
  struct Scratch {
    std::vector<FourierTransform::Number> in, out;
    std::vector<double> power, other_power;
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
  void load(const float* samples, int64_t frame, double FourierTransform::Number::*to, Scratch& scratch) const;
  void add_frame(const std::vector<double>& power, int64_t frame, float* bands) const;

  const config::SoundOptions options_;
  const FourierTransform transform_;
  std::vector<double> window_;
  std::vector<Band> bands_;
};

}  // namespace stoker::data
