// SPDX-License-Identifier: Apache-2.0
#include "data/sound/sound_source.h"

#include <atomic>
#include <chrono>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"
#include "data/sound/mel_spectrogram.h"
#include "data/sound/sound_file.h"

namespace stoker::data {
namespace {

constexpr int64_t kMostNumbers = int64_t{1} << 26;  // of a spectrogram, and samples that it is made of

void require_possible(const config::SoundOptions& options) {
  const auto refuse = [](const std::string& cause, const char* hint) {
    throw core::Error(core::ErrorKind::config, cause, hint);
  };
  if (options.samples() <= options.n_fft / 2) {
    refuse(
        core::format("--seconds {} are {} at {} Hz, but --n-fft {} needs more than {}", options.seconds,
                     core::counted(options.samples(), "sample"), options.sample_rate, options.n_fft, options.n_fft / 2),
        "use longer excerpts or a smaller --n-fft");
  }
  if (options.samples() > kMostNumbers || options.frames() > kMostNumbers / options.mels) {
    refuse(core::format("--seconds {} make spectrograms of {} x {} numbers; {} are the most", options.seconds,
                        options.mels, options.frames(), kMostNumbers),
           "use shorter excerpts or a larger --hop");
  }
}

class SoundSource : public ForwardingSource {
 public:
  SoundSource(std::shared_ptr<const Source> files, std::function<SoundPlace(int64_t)> place,
              const config::SoundOptions& options)
      : ForwardingSource(std::move(files)),
        place_(std::move(place)),
        options_(options),
        spectrogram_(options),
        is_whole_(static_cast<size_t>(behind().size())) {
    core::Hasher hasher;
    hasher.add(core::format("sounds of {}: {} Hz, {}, {}, {}, {} s", behind().fingerprint(), options.sample_rate,
                            options.n_fft, options.hop_length(), options.mels, options.seconds));
    if (options.mel_scale == config::MelScale::slaney) hasher.add(", slaney's scale");
    if (options.mel_norm == config::MelNorm::slaney) hasher.add(", slaney's norm");
    fingerprint_ = hasher.hex();
  }

  SampleShape fixed_shape() const override {
    SampleShape shape = image_shape(options_.mels, options_.frames(), 1);
    shape.element = Element::float32;
    return shape;
  }
  RegionOfInterest region(int64_t /*index*/) const override { return {}; }
  const ExcerptSource* excerpts() const override { return this; }

  std::string read(int64_t index, std::vector<uint8_t>& buffer, SampleContent& content) const override {
    constexpr double kMiddle = 0.5;
    return read_excerpt(index, kMiddle, buffer, content);
  }

 private:
  std::string read_excerpt(int64_t index, double position, std::vector<uint8_t>& buffer,
                           SampleContent& content) const override {
    using Clock = std::chrono::steady_clock;
    thread_local SoundScratch sound_scratch;
    thread_local MelSpectrogram::Scratch mel_scratch;
    thread_local std::vector<float> samples;
    const SampleShape shape = fixed_shape();
    const auto bytes = static_cast<size_t>(shape.image_bytes());
    samples.resize(static_cast<size_t>(options_.samples()));
    std::atomic<bool>& is_whole = is_whole_[static_cast<size_t>(index)];
    sound_scratch.checks_end = !is_whole.load(std::memory_order_relaxed);
    std::string cause = read_sound(place_(index), position, options_, sound_scratch, samples.data());
    if (!cause.empty() && !sound_scratch.has_rest) return cause;
    if (cause.empty()) is_whole.store(true, std::memory_order_relaxed);
    const Clock::time_point start = Clock::now();
    if (buffer.size() < bytes) buffer.resize(bytes);
    spectrogram_.decibels(samples.data(), mel_scratch, reinterpret_cast<float*>(buffer.data()));
    content.set_pixels(buffer.data(), shape);
    content.decode_nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
    content.is_rest = !cause.empty();
    return cause;
  }
  std::string read_whole(int64_t index, std::vector<uint8_t>& buffer, SampleContent& content) const override {
    if (!place_(index).part.is_whole()) return "a part of a file is not packed: train on the loose files";
    return behind().read(index, buffer, content);
  }
  /// An excerpt is not a part of the file's bytes.
  int64_t stored_bytes(int64_t /*index*/) const override { return -1; }
  std::string read_head(int64_t index, int64_t, std::vector<uint8_t>& buffer, SampleContent& content) const override {
    return read(index, buffer, content);
  }

  const std::function<SoundPlace(int64_t)> place_;
  const config::SoundOptions options_;
  const MelSpectrogram spectrogram_;
  mutable std::vector<std::atomic<bool>> is_whole_;  ///< files that were found to be
};

}  // namespace

std::string part_text(const SoundPart& part) {
  if (part.is_whole()) return "";
  return core::format("#{}-{}", part.begin, part.end > 0 ? core::format("{}", part.end) : "");
}

std::shared_ptr<const Source> make_sound_source(std::shared_ptr<const Source> files,
                                                std::function<SoundPlace(int64_t)> place,
                                                const config::SoundOptions& options) {
  require_possible(options);
  return std::make_shared<SoundSource>(std::move(files), std::move(place), options);
}

}  // namespace stoker::data
