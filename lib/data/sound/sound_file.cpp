// SPDX-License-Identifier: Apache-2.0
#include "data/sound/sound_file.h"

#include <sndfile.h>
#include <soxr.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>
#include <numeric>

#include "core/error.h"
#include "core/format.h"
#include "data/sound/mp3_reader.h"
#include "data/storage/byte_reader.h"

namespace stoker::data {
namespace {

constexpr int kLowestRate = 100, kHighestRate = 768'000, kMostChannels = 64;
constexpr double kMargin = 0.02;         // seconds beside an excerpt that the filter of the resampler sees
constexpr int64_t kBlock = 1 << 15;      // numbers that are decoded at once
constexpr float kLargestNumber = 1e11f;  // the power of larger ones may be infinite in float32, their bands no numbers

/// A file, or a sound within one, as libsndfile reads it. What goes wrong on the storage may not pass through C: it is
/// kept.
class SoundBytes {
 public:
  SoundBytes(const std::string& path, const SoundPlace& place)
      : file_(path), first_(place.first_byte), size_(place.bytes.value_or(file_.size())) {}

  const FileStamp& stamp() const { return file_.stamp(); }
  bool is_inside() const { return first_ <= file_.size() && size_ <= file_.size() - first_; }
  sf_count_t length() const { return static_cast<sf_count_t>(size_); }
  SF_VIRTUAL_IO calls() {
    SF_VIRTUAL_IO io{};
    io.get_filelen = [](void* self) { return of(self).length(); };
    io.seek = [](sf_count_t offset, int whence, void* self) { return of(self).seek(offset, whence); };
    io.read = [](void* bytes, sf_count_t count, void* self) { return of(self).read(bytes, count); };
    io.write = [](const void*, sf_count_t, void*) { return sf_count_t{0}; };
    io.tell = [](void* self) { return of(self).at_; };
    return io;
  }
  uint64_t size() const { return size_; }
  /// `count` bytes from `begin` on, as many as there are.
  std::string part(uint64_t begin, uint64_t count) const {
    std::string bytes(begin < size() ? std::min(count, size() - begin) : 0, '\0');
    return file_.try_read(first_ + begin, bytes.data(), bytes.size()).empty() ? bytes : "";
  }
  Mp3Bytes mp3_calls() {
    return {this,
            [](void* self, void* bytes, size_t count) -> ssize_t {
              return of(self).read(bytes, static_cast<sf_count_t>(count));
            },
            [](void* self, off_t offset, int whence) -> off_t { return of(self).seek(offset, whence); }};
  }
  void rethrow() const {
    if (problem_ != nullptr) std::rethrow_exception(problem_);
  }

 private:
  static SoundBytes& of(void* self) { return *static_cast<SoundBytes*>(self); }
  sf_count_t seek(sf_count_t offset, int whence) {
    const sf_count_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? at_ : length();
    sf_count_t to = 0;
    if (__builtin_add_overflow(from, offset, &to) || to < 0) return -1;
    return at_ = to;
  }
  sf_count_t read(void* bytes, sf_count_t count) {
    if (problem_ != nullptr || count <= 0 || at_ >= length()) return 0;
    const sf_count_t there = std::min(count, length() - at_);
    try {
      if (!file_.try_read(first_ + static_cast<uint64_t>(at_), bytes, static_cast<uint64_t>(there)).empty()) return 0;
    } catch (...) {
      problem_ = std::current_exception();
      return 0;
    }
    at_ += there;
    return there;
  }

  const FileBytes file_;
  const uint64_t first_, size_;
  sf_count_t at_ = 0;
  std::exception_ptr problem_;
};

// Files that were cut short open as shorter sounds: what their headers promise is compared with the bytes that there
// are.

uint64_t number_in(const std::string& bytes, size_t at, size_t count, bool is_big_endian) {
  uint64_t number = 0;
  for (size_t i = 0; i < count; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[at + (is_big_endian ? i : count - 1 - i)]);
    number = number << 8 | byte;
  }
  return number;
}

/// Where the numbers of a WAV file end by its header; 0: a stream, whose length was not known when it was written.
uint64_t end_of_wav(const SoundBytes& file, const std::string& head) {
  constexpr uint64_t kLeastUnknown = 0x7ffff000;  // writers of streams have this, or more
  constexpr int kMostChunks = 10'000;
  const bool is_big_endian = head.compare(0, 4, "RIFX") == 0;
  uint64_t at = 12, long_size = 0;
  for (int i = 0; i < kMostChunks; ++i) {
    const std::string chunk = file.part(at, 24);
    if (chunk.size() < 8) return at > file.size() ? at : 0;
    uint64_t size = number_in(chunk, 4, 4, is_big_endian);
    if (chunk.compare(0, 4, "ds64") == 0 && chunk.size() == 24) long_size = number_in(chunk, 16, 8, false);
    if (chunk.compare(0, 4, "data") == 0) {
      if (long_size > 0 && size == 0xffffffff) size = long_size;
      return size >= kLeastUnknown && long_size == 0 ? 0 : at + 8 + size;
    }
    at += 8 + size + size % 2;
  }
  return 0;
}

/// Where the last page of an Ogg file ends.
uint64_t end_of_ogg(const SoundBytes& file) {
  constexpr uint64_t kLargestPage = 27 + 255 + 255 * 255;
  const uint64_t begin = file.size() - std::min(file.size(), 2 * kLargestPage);
  const std::string tail = file.part(begin, 2 * kLargestPage);
  const size_t page = tail.rfind(std::string("OggS\0", 5));
  if (page == std::string::npos) return 0;
  if (tail.size() < page + 27) return begin + page + 27;
  const auto segments = static_cast<unsigned char>(tail[page + 26]);
  if (tail.size() < page + 27 + segments) return begin + page + 27 + segments;
  uint64_t end = begin + page + 27 + segments;
  for (size_t i = 0; i < segments; ++i) end += static_cast<unsigned char>(tail[page + 27 + i]);
  return end;
}

/// Where an MP3 file ends by the frame that its encoder wrote first (Xing's); 0: it has none.
uint64_t end_of_mp3(const SoundBytes& file, const std::string& head) {
  uint64_t at = 0;
  if (head.compare(0, 3, "ID3") == 0 && head.size() >= 10) {
    at = 10;
    for (size_t i = 0; i < 4; ++i) at += uint64_t{static_cast<unsigned char>(head[6 + i])} << (7 * (3 - i));
  }
  const std::string frame = file.part(at, 64);
  if (frame.size() < 64 || frame[0] != '\xff' || (frame[1] & 0xe0) != 0xe0) return 0;
  for (const size_t tag : {36, 21, 13}) {  // behind the side information, by version and channels
    if (frame.compare(tag, 4, "Xing") != 0 && frame.compare(tag, 4, "Info") != 0) continue;
    const uint64_t fields = number_in(frame, tag + 4, 4, /*is_big_endian=*/true);
    if ((fields & 2) == 0) return 0;
    return at + number_in(frame, tag + 8 + ((fields & 1) != 0 ? 4 : 0), 4, true);
  }
  return 0;
}

/// "" where the file is whole as far as its header shows.
std::string missing_end(const SoundBytes& file) {
  const std::string head = file.part(0, 12), kind = head.substr(0, 4);
  const bool is_wav = kind == "RIFF" || kind == "RIFX" || kind == "RF64";
  const uint64_t end = is_wav ? end_of_wav(file, head) : kind == "OggS" ? end_of_ogg(file) : end_of_mp3(file, head);
  if (end <= file.size()) return "";
  return core::format("cut short: it has {} of the {} bytes that its header promises", core::count_text(file.size()),
                      core::count_text(end));
}

bool is_read_format(int format) {
  switch (format & SF_FORMAT_TYPEMASK) {
    case SF_FORMAT_WAV:
    case SF_FORMAT_WAVEX:
    case SF_FORMAT_RF64:
    case SF_FORMAT_FLAC:
    case SF_FORMAT_OGG:
    case SF_FORMAT_MPEG: return true;
    default: return false;
  }
}

std::string seconds_text(double seconds) { return core::format("{:.3g} s", seconds); }

/// The name of the file's format, for a message.
std::string format_name(int format) {
  SF_FORMAT_INFO info{};
  info.format = format & SF_FORMAT_TYPEMASK;
  if (::sf_command(nullptr, SFC_GET_FORMAT_INFO, &info, sizeof info) != 0 || info.name == nullptr)
    return "another format";
  return info.name;
}

/// Why the last file did not open; some texts of libsndfile mislead, as all bytes come from us.
std::string opening_problem() {
  const std::string text = ::sf_strerror(nullptr);
  const bool misleads = text.find("does not exist") != std::string::npos || text.find("nternal") != std::string::npos;
  return misleads ? "its header is damaged" : text;
}

/// One open file.
class SoundDecoder {
 public:
  /// Sets a cause where the file is bad.
  SoundDecoder(const std::string& path, const SoundPlace& place, bool checks_end, std::string& cause)
      : bytes_(path, place) {
    if (bytes_.stamp().size != place.stamp.size || !bytes_.is_inside()) {
      cause = "it has changed since the scan";
    } else if (bytes_.stamp().modified_ns != place.stamp.modified_ns) {
      cause = "its time has changed since the scan";
    } else if (bytes_.length() == 0) {
      cause = "the file is empty";
    }
    if (!cause.empty()) return;
    if (checks_end) cut_ = missing_end(bytes_);
    SF_VIRTUAL_IO io = bytes_.calls();
    file_.reset(::sf_open_virtual(&io, SFM_READ, &info_, &bytes_));
    bytes_.rethrow();
    cause = problem();
    if (cause.empty() && (info_.format & SF_FORMAT_TYPEMASK) == SF_FORMAT_MPEG) cause = use_mp3_reader(path, place);
  }

  double rate() const { return info_.samplerate; }
  double seconds() const { return static_cast<double>(info_.frames) / rate(); }

  /// The cause of a file that is cut short, too, and with `scratch.has_rest` what it still holds.
  std::string read(const SoundPart& part, double position, const config::SoundOptions& options, SoundScratch& scratch,
                   float* out) {
    if (std::string cause = read_excerpt(part, position, options, scratch, out); !cause.empty()) return cause;
    if (scratch.checks_end && cut_.empty() && (info_.format & SF_FORMAT_TYPEMASK) == SF_FORMAT_FLAC) check_last_frame();
    scratch.has_rest = !cut_.empty();
    return cut_;
  }

 private:
  std::string read_excerpt(const SoundPart& part, double position, const config::SoundOptions& options,
                           SoundScratch& scratch, float* out) {
    const int64_t rate = info_.samplerate, wanted = options.samples(), to = options.sample_rate;
    const int64_t first = frame_at(part.begin), last = part.end > 0 ? frame_at(part.end) : info_.frames;
    if (first >= info_.frames || first >= last) {
      return core::format("the part from {} on lies behind its end: it has {}", seconds_text(part.begin),
                          seconds_text(seconds()));
    }
    const int64_t divisor = std::gcd(rate, to), in_step = rate / divisor, out_step = to / divisor;
    // Frames of the file that `wanted` samples are made of.
    const int64_t needed = std::min(last - first, (wanted * in_step + out_step - 1) / out_step);
    const int64_t begin = first + std::llround(position * static_cast<double>(last - first - needed));
    if (rate == to) {
      if (std::string cause = read_mono(begin, needed, scratch); !cause.empty()) return cause;
      return finish(scratch.mono, 0, wanted, out);
    }
    // A margin before it of a whole number of samples after resampling.
    const int64_t space = begin - first, margin = static_cast<int64_t>(kMargin * static_cast<double>(rate));
    const int64_t before = std::min((margin + in_step - 1) / in_step, space / in_step) * in_step;
    const int64_t after = std::min(margin, last - begin - needed);
    if (std::string cause = read_mono(begin - before, before + needed + after, scratch); !cause.empty()) return cause;
    resample(rate, to, scratch);
    const int64_t made = std::min(wanted, (needed * out_step + in_step - 1) / in_step);
    return finish(scratch.resampled, before / in_step * out_step, made, out, wanted);
  }

  /// Its header has the number of frames.
  void check_last_frame() {
    float last[kMostChannels];
    const bool is_there = ::sf_seek(file_.get(), info_.frames - 1, SEEK_SET) == info_.frames - 1 &&
                          ::sf_readf_float(file_.get(), last, 1) == 1;
    bytes_.rethrow();
    if (!is_there) cut_ = core::format("cut short or damaged: its header promises {}", seconds_text(seconds()));
  }

  std::string use_mp3_reader(const std::string& path, const SoundPlace& place) {
    file_.reset();
    mp3_ = std::make_unique<Mp3Reader>(bytes_.mp3_calls(), core::format("{} {} {} {}", path, place.first_byte,
                                                                        place.stamp.size, place.stamp.modified_ns));
    bytes_.rethrow();
    info_.frames = mp3_->frames();
    return info_.frames > 0 ? "" : "it holds no sound, or its first frame is damaged";
  }

  std::string problem() const {
    if (file_ == nullptr) return core::format("is not read as a sound: {}", opening_problem());
    if (!is_read_format(info_.format)) {
      return core::format("is {}, which is not read; {}", format_name(info_.format), kSoundsRead);
    }
    if (info_.samplerate < kLowestRate || info_.samplerate > kHighestRate) {
      return core::format("its rate is {} Hz; {} to {} are read", info_.samplerate, kLowestRate, kHighestRate);
    }
    if (info_.channels < 1 || info_.channels > kMostChannels) {
      return core::format("it has {} channels; 1 to {} are read", info_.channels, kMostChannels);
    }
    if (info_.seekable == 0) return "no place of it can be sought";
    return info_.frames > 0 ? "" : "it holds no sound";
  }

  /// The frame at a time, within the file.
  int64_t frame_at(double seconds) const {
    const double frame = std::max(0.0, seconds) * rate();
    return frame >= static_cast<double>(info_.frames) ? info_.frames : std::llround(frame);
  }

  /// The mean of the channels, in scratch.mono.
  std::string read_mono(int64_t begin, int64_t count, SoundScratch& scratch) {
    const int64_t channels = info_.channels, most = kBlock / channels;
    scratch.mono.resize(static_cast<size_t>(count));
    scratch.interleaved.resize(static_cast<size_t>(most * channels));
    if (mp3_ != nullptr ? !mp3_->seek(begin) : ::sf_seek(file_.get(), begin, SEEK_SET) != begin) {
      bytes_.rethrow();
      return core::format("cut short or damaged: {} of {} cannot be reached",
                          seconds_text(static_cast<double>(begin) / rate()), seconds_text(seconds()));
    }
    for (int64_t done = 0; done < count;) {
      const int64_t asked = std::min(most, count - done);
      float* const numbers = scratch.interleaved.data();
      const int64_t got =
          mp3_ != nullptr ? mp3_->read(numbers, asked, channels) : ::sf_readf_float(file_.get(), numbers, asked);
      bytes_.rethrow();
      for (int64_t i = 0; i < got; ++i) {
        const float* const frame = scratch.interleaved.data() + i * channels;
        double total = 0;
        for (int64_t c = 0; c < channels; ++c) total += static_cast<double>(frame[c]);
        const auto mean = static_cast<float>(total / static_cast<double>(channels));
        if (!std::isfinite(mean)) return "it holds a number that is not finite";
        if (std::abs(mean) > kLargestNumber) {
          return core::format("it holds the number {:.3g}; sounds lie between -1 and 1", mean);
        }
        scratch.mono[static_cast<size_t>(done + i)] = mean;
      }
      done += got;
      if (got < asked) {
        cut_ = core::format("cut short or damaged: it ends at {} of {}",
                            seconds_text(static_cast<double>(begin + done) / rate()), seconds_text(seconds()));
        if (done == 0) return cut_;
        std::fill(scratch.mono.begin() + done, scratch.mono.end(), 0.0f);
        return "";
      }
    }
    return "";
  }

  static void resample(int64_t from, int64_t to, SoundScratch& scratch) {
    if (scratch.resampler == nullptr || scratch.from != from || scratch.to != to) {
      const soxr_io_spec_t numbers = ::soxr_io_spec(SOXR_FLOAT32_I, SOXR_FLOAT32_I);
      const soxr_quality_spec_t quality = ::soxr_quality_spec(SOXR_HQ, 0);
      const soxr_runtime_spec_t runtime = ::soxr_runtime_spec(1);
      soxr_error_t error = nullptr;
      scratch.resampler.reset(
          ::soxr_create(static_cast<double>(from), static_cast<double>(to), 1, &error, &numbers, &quality, &runtime));
      require_done(error);
      scratch.from = from;
      scratch.to = to;
    } else {
      require_done(::soxr_clear(scratch.resampler.get()));
    }
    const auto count = scratch.mono.size();
    const auto space = static_cast<size_t>(static_cast<int64_t>(count) * to / from + 2);
    scratch.resampled.resize(space);
    size_t used = 0, made = 0;
    for (size_t total = 0, taken = 0;;) {
      const bool is_end = taken == count;
      require_done(::soxr_process(scratch.resampler.get(), is_end ? nullptr : scratch.mono.data() + taken,
                                  is_end ? 0 : count - taken, &used, scratch.resampled.data() + total, space - total,
                                  &made));
      taken += is_end ? 0 : used;
      total += made;
      if (total < space && !(is_end && made == 0)) continue;
      scratch.resampled.resize(total);
      return;
    }
  }

  static void require_done(soxr_error_t error) {
    if (error != nullptr) throw core::Error(core::ErrorKind::bug, core::format("libsoxr: {}", error));
  }

  /// `count` samples from `begin` on, and silence up to `wanted`.
  static std::string finish(const std::vector<float>& samples, int64_t begin, int64_t count, float* out,
                            int64_t wanted) {
    const int64_t there = std::clamp<int64_t>(static_cast<int64_t>(samples.size()) - begin, 0, count);
    std::copy_n(samples.data() + begin, there, out);
    std::fill(out + there, out + wanted, 0.0f);
    return "";
  }
  static std::string finish(const std::vector<float>& samples, int64_t begin, int64_t wanted, float* out) {
    return finish(samples, begin, wanted, out, wanted);
  }

  struct Closer {
    void operator()(SNDFILE* file) const { ::sf_close(file); }
  };
  SoundBytes bytes_;
  std::string cut_;  ///< why it is a part of a sound; empty: as far as is known it is whole
  SF_INFO info_{};
  std::unique_ptr<SNDFILE, Closer> file_;
  std::unique_ptr<Mp3Reader> mp3_;  ///< in its place
};

/// Returns "" or why the file is bad.
std::string try_sound(const std::string& path, const SoundPlace& place, bool checks_end,
                      const std::function<std::string(SoundDecoder&)>& use) {
  try {
    std::string cause;
    SoundDecoder decoder(path, place, checks_end, cause);
    return cause.empty() ? use(decoder) : cause;
  } catch (const core::Error& error) {
    if (error.kind() != core::ErrorKind::no_input) throw;
    return error.what();
  }
}

std::string with_sound(const SoundPlace& place, bool checks_end, const std::function<std::string(SoundDecoder&)>& use) {
  if (!place.problem.empty()) return place.problem;
  if (!place.copy.empty()) {
    if (try_sound(place.copy, place, checks_end, use).empty()) return "";
  }
  return try_sound(place.path, place, checks_end, use);
}

}  // namespace

SoundScratch::SoundScratch() : resampler(nullptr, ::soxr_delete) {}
SoundScratch::~SoundScratch() = default;

std::string read_sound(const SoundPlace& place, double position, const config::SoundOptions& options,
                       SoundScratch& scratch, float* out) {
  scratch.has_rest = false;
  return with_sound(place, scratch.checks_end,
                    [&](SoundDecoder& sound) { return sound.read(place.part, position, options, scratch, out); });
}

double sound_seconds(const SoundPlace& place) {
  double seconds = -1;
  with_sound(place, /*checks_end=*/false, [&](SoundDecoder& sound) {
    seconds = sound.seconds();
    return std::string();
  });
  return seconds;
}

}  // namespace stoker::data
