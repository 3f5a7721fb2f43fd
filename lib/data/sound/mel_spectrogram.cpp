// SPDX-License-Identifier: Apache-2.0
#include "data/sound/mel_spectrogram.h"

#include <algorithm>
#include <cmath>

namespace stoker::data {
namespace {

using Number = FourierTransform::Number;

constexpr double kTwoPi = 6.283185307179586476925286766559;

Number product(const Number& a, const Number& b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
Number sum(const Number& a, const Number& b) { return {a.re + b.re, a.im + b.im}; }
Number difference(const Number& a, const Number& b) { return {a.re - b.re, a.im - b.im}; }

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

int64_t largest_factor(int64_t number) {
  int64_t largest = 1;
  for (int64_t factor = 2; number > 1; ++factor) {
    if (factor * factor > number) factor = number;
    for (; number % factor == 0; number /= factor) largest = factor;
  }
  return largest;
}

FourierTransform::FourierTransform(int64_t size) : size_(size) {
  int64_t rest = size;
  const auto take = [&](int64_t factor) {
    for (; rest % factor == 0; rest /= factor) factors_.push_back(factor);
  };
  take(4);
  for (int64_t factor = 2; rest > 1; ++factor) take(factor);
  for (int64_t k = 0; k < size; ++k) {
    const double angle = -kTwoPi * static_cast<double>(k) / static_cast<double>(size);
    roots_.push_back({std::cos(angle), std::sin(angle)});
  }
}

/// The transform of every stride-th number: of each of `factor` interleaved parts, then joined.
void FourierTransform::part(const Number* in, Number* out, int64_t size, int64_t stride, size_t depth) const {
  if (size == 1) {
    *out = *in;
    return;
  }
  const int64_t factor = factors_[depth], length = size / factor;
  for (int64_t i = 0; i < factor; ++i) part(in + i * stride, out + i * length, length, stride * factor, depth + 1);
  join(out, factor, length, stride);
}

void FourierTransform::join(Number* out, int64_t factor, int64_t length, int64_t stride) const {
  const Number* const roots = roots_.data();
  if (factor == 2) {
    for (int64_t k = 0; k < length; ++k) {
      const Number a = out[k], b = product(out[k + length], roots[k * stride]);
      out[k] = sum(a, b);
      out[k + length] = difference(a, b);
    }
    return;
  }
  if (factor == 4) {
    for (int64_t k = 0; k < length; ++k) {
      const Number a = out[k], b = product(out[k + length], roots[k * stride]),
                   c = product(out[k + 2 * length], roots[2 * k * stride]),
                   d = product(out[k + 3 * length], roots[3 * k * stride]);
      const Number even = sum(a, c), odd = sum(b, d), first = difference(a, c), last = difference(b, d);
      out[k] = sum(even, odd);
      out[k + 2 * length] = difference(even, odd);
      out[k + length] = {first.re + last.im, first.im - last.re};
      out[k + 3 * length] = {first.re - last.im, first.im + last.re};
    }
    return;
  }
  Number terms[kLargestFactor];
  for (int64_t k = 0; k < length; ++k) {
    for (int64_t i = 0; i < factor; ++i) terms[i] = product(out[k + i * length], roots[i * k * stride]);
    for (int64_t i = 0; i < factor; ++i) {
      Number total = terms[0];
      for (int64_t j = 1; j < factor; ++j) {
        total = sum(total, product(terms[j], roots[i * j % factor * length * stride]));
      }
      out[k + i * length] = total;
    }
  }
}

MelSpectrogram::MelSpectrogram(const config::SoundOptions& options) : options_(options), transform_(options.n_fft) {
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

void MelSpectrogram::load(const float* samples, int64_t frame, double Number::*to, Scratch& scratch) const {
  const int64_t size = options_.n_fft, count = options_.samples(), begin = frame * options_.hop_length() - size / 2;
  for (int64_t i = 0; i < size; ++i) {
    scratch.in[static_cast<size_t>(i)].*to =
        window_[static_cast<size_t>(i)] * static_cast<double>(samples[reflected(begin + i, count)]);
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

/// Two frames at once: as the real and the imaginary part of one.
void MelSpectrogram::powers(const float* samples, Scratch& scratch, float* bands) const {
  const int64_t size = options_.n_fft, frames = options_.frames();
  scratch.in.resize(static_cast<size_t>(size));
  scratch.out.resize(static_cast<size_t>(size));
  scratch.power.resize(static_cast<size_t>(size / 2 + 1));
  scratch.other_power.resize(static_cast<size_t>(size / 2 + 1));
  for (int64_t frame = 0; frame < frames; frame += 2) {
    const bool has_other = frame + 1 < frames;
    load(samples, frame, &Number::re, scratch);
    if (has_other) load(samples, frame + 1, &Number::im, scratch);
    if (!has_other) {
      for (Number& number : scratch.in) number.im = 0;
    }
    transform_.run(scratch.in.data(), scratch.out.data());
    for (int64_t k = 0; k <= size / 2; ++k) {
      const Number a = scratch.out[static_cast<size_t>(k)], b = scratch.out[static_cast<size_t>(k == 0 ? 0 : size - k)];
      const Number real = {(a.re + b.re) / 2, (a.im - b.im) / 2}, imaginary = {(a.im + b.im) / 2, (b.re - a.re) / 2};
      scratch.power[static_cast<size_t>(k)] = real.re * real.re + real.im * real.im;
      scratch.other_power[static_cast<size_t>(k)] = imaginary.re * imaginary.re + imaginary.im * imaginary.im;
    }
    add_frame(scratch.power, frame, bands);
    if (has_other) add_frame(scratch.other_power, frame + 1, bands);
  }
}

void MelSpectrogram::decibels(const float* samples, Scratch& scratch, float* bands) const {
  powers(samples, scratch, bands);
  for (int64_t i = 0; i < options_.mels * options_.frames(); ++i) {
    bands[i] = static_cast<float>(10 * std::log10(std::max(static_cast<double>(bands[i]), kFloor)));
  }
}

}  // namespace stoker::data
