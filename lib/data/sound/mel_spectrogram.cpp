// SPDX-License-Identifier: Apache-2.0
#include "data/sound/mel_spectrogram.h"

#include <algorithm>
#include <cmath>

namespace stoker::data {
namespace {

constexpr double kTwoPi = 6.283185307179586476925286766559;

constexpr int64_t kSamplesAtOnce = 1 << 15;  // of all windows that are transformed together

// Slaney's scale is linear up to 1,000 Hz, where it has 15 mels, and logarithmic above.
constexpr double kLastLinearHertz = 1000, kLastLinearMel = 15;
const double kLogStep = std::log(6.4) / 27;

double mel_of(config::MelScale scale, double hertz) {
  if (scale == config::MelScale::htk) return 2595 * std::log10(1 + hertz / 700);
  if (hertz < kLastLinearHertz) return hertz * kLastLinearMel / kLastLinearHertz;
  return kLastLinearMel + std::log(hertz / kLastLinearHertz) / kLogStep;
}

float hertz_of(config::MelScale scale, float mel) {
  if (scale == config::MelScale::htk) return 700 * (std::pow(10.0f, mel / 2595) - 1);
  constexpr auto kLast = static_cast<float>(kLastLinearMel), kHertz = static_cast<float>(kLastLinearHertz);
  return mel < kLast ? mel * (kHertz / kLast) : kHertz * std::exp(static_cast<float>(kLogStep) * (mel - kLast));
}

/// torch.linspace(0, end, count)[i] in its single precision, which shows in narrow bands.
float spaced(float end, int64_t count, int64_t i) {
  const float step = end / static_cast<float>(count - 1);
  return i < count / 2 ? step * static_cast<float>(i) : end - step * static_cast<float>(count - 1 - i);
}

/// Where `at` lies when the samples are mirrored at both ends, without doubling these.
int64_t reflected(int64_t at, int64_t size) {
  if (at < 0) at = -at;
  return at < size ? at : 2 * (size - 1) - at;
}

}  // namespace

MelSpectrogram::MelSpectrogram(const config::SoundOptions& options) : options_(options) {
  const int64_t size = options.n_fft, frequencies = size / 2 + 1;
  for (int64_t i = 0; i < size; ++i) {
    window_.push_back(0.5 - 0.5 * std::cos(kTwoPi * static_cast<double>(i) / static_cast<double>(size)));
  }
  const auto highest = static_cast<float>(options.sample_rate / 2);
  const auto most = static_cast<float>(mel_of(options.mel_scale, static_cast<double>(highest)));
  const auto point = [&](int64_t i) { return hertz_of(options.mel_scale, spaced(most, options.mels + 2, i)); };
  const bool has_norm = options.mel_norm == config::MelNorm::slaney;
  for (int64_t i = 0; i < options.mels; ++i) {
    const float low = point(i), middle = point(i + 1), high = point(i + 2);
    Band band;
    for (int64_t k = 0; k < frequencies; ++k) {
      const float hertz = spaced(highest, frequencies, k);
      const float weight = std::min((hertz - low) / (middle - low), (high - hertz) / (high - middle));
      if (!(weight > 0)) continue;
      if (band.weights.empty()) band.first = k;
      band.weights.push_back(static_cast<double>(has_norm ? weight * (2 / (high - low)) : weight));
    }
    bands_.push_back(std::move(band));
  }
}

void MelSpectrogram::load(const float* samples, int64_t frame, double* window) const {
  const int64_t size = options_.n_fft, count = options_.samples(), begin = frame * options_.hop_length() - size / 2;
  for (int64_t i = 0; i < size; ++i) {
    window[i] = window_[static_cast<size_t>(i)] * static_cast<double>(samples[reflected(begin + i, count)]);
  }
}

void MelSpectrogram::add_frame(const std::vector<double>& power, int64_t frame, float* bands) const {
  const int64_t frames = options_.frames();
  for (size_t i = 0; i < bands_.size(); ++i) {
    const Band& band = bands_[i];
    double total = 0;
    for (size_t k = 0; k < band.weights.size(); ++k) {
      total += band.weights[k] * power[static_cast<size_t>(band.first) + k];
    }
    bands[static_cast<int64_t>(i) * frames + frame] = static_cast<float>(total);
  }
}

void MelSpectrogram::powers(const float* samples, Scratch& scratch, float* bands) const {
  const int64_t size = options_.n_fft, frames = options_.frames(),
                at_once = std::max<int64_t>(1, kSamplesAtOnce / size);
  scratch.power.resize(static_cast<size_t>(size / 2 + 1));
  for (int64_t first = 0; first < frames; first += at_once) {
    const int64_t count = std::min(at_once, frames - first);
    scratch.windows.create(static_cast<int>(count), static_cast<int>(size), CV_64F);
    for (int64_t i = 0; i < count; ++i) load(samples, first + i, scratch.windows.ptr<double>(static_cast<int>(i)));
    cv::dft(scratch.windows, scratch.spectra, cv::DFT_ROWS);
    for (int64_t i = 0; i < count; ++i) {
      // The real part of frequency 0, then both parts of each; that of half of an even size is real again.
      const double* const spectrum = scratch.spectra.ptr<double>(static_cast<int>(i));
      scratch.power[0] = spectrum[0] * spectrum[0];
      for (int64_t k = 1; k <= size / 2; ++k) {
        const double re = spectrum[2 * k - 1], im = 2 * k < size ? spectrum[2 * k] : 0;
        scratch.power[static_cast<size_t>(k)] = re * re + im * im;
      }
      add_frame(scratch.power, first + i, bands);
    }
  }
}

void MelSpectrogram::decibels(const float* samples, Scratch& scratch, float* bands) const {
  powers(samples, scratch, bands);
  for (int64_t i = 0; i < options_.mels * options_.frames(); ++i) {
    bands[i] = static_cast<float>(10 * std::log10(std::max(static_cast<double>(bands[i]), kFloor)));
  }
}

}  // namespace stoker::data
