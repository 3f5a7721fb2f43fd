// SPDX-License-Identifier: Apache-2.0
// Excerpts of sound files, and files that are none.
#include "data/sound/sound_file.h"

#include <gtest/gtest.h>
#include <sndfile.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>

#include "data/storage/tree_walk.h"
#include "made_data.h"
#include "made_sound.h"

namespace stoker::data {
namespace {

class SoundFileTest : public ::testing::Test {
 protected:
  SoundFileTest() { options_.sample_rate = 8000; }

  /// The cause; samples in out_.
  std::string read(const std::string& path, double position = 0.5, const SoundPart& part = {}) {
    out_.assign(static_cast<size_t>(options_.samples()), 7.0f);
    return read_sound({path, "", stamp_of(path), part}, position, options_, scratch_, out_.data());
  }
  std::string write(const std::string& content) const { return folder_.write("a.wav", content); }

  TempFolder folder_;
  config::SoundOptions options_;
  SoundScratch scratch_;
  std::vector<float> out_;
};

TEST_F(SoundFileTest, NumbersOfEveryKindAreTheSameSound) {
  options_.seconds = 0.25;
  const std::vector<float> tone = tone_of(440, 0.25, 8000);
  for (const auto& [kind, error] : {std::pair{WavKind::uint8, 0x1p-8},
                                    {WavKind::int16, 0x1p-16},
                                    {WavKind::int24, 0x1p-24},
                                    {WavKind::int32, 0x1p-24},
                                    {WavKind::float32, 0.0}}) {
    ASSERT_EQ(read(write(wav_of(tone, 8000, 1, kind))), "");
    for (size_t i = 0; i < tone.size(); ++i) ASSERT_NEAR(out_[i], tone[i], error) << static_cast<int>(kind);
  }
}

TEST_F(SoundFileTest, ChannelsBecomeTheirMean) {
  options_.seconds = 0.01;
  std::vector<float> both;
  for (int i = 0; i < 80; ++i) both.insert(both.end(), {static_cast<float>(i) / 128, -0.25f});
  ASSERT_EQ(read(write(wav_of(both, 8000, 2, WavKind::float32))), "");
  for (int i = 0; i < 80; ++i) EXPECT_EQ(out_[static_cast<size_t>(i)], (static_cast<float>(i) / 128 - 0.25f) / 2);
}

TEST_F(SoundFileTest, AnExcerptIsASliceOfTheWhole) {
  std::vector<float> ramp;
  for (int i = 0; i < 40000; ++i) ramp.push_back(static_cast<float>(i) / 65536);
  const std::string path = write(wav_of(ramp, 8000, 1, WavKind::float32));
  for (const auto& [position, begin] : {std::pair{0.0, 0}, {0.25, 8000}, {0.5, 16000}, {1.0, 32000}}) {
    ASSERT_EQ(read(path, position), "");
    for (int i = 0; i < 8000; ++i) ASSERT_EQ(out_[static_cast<size_t>(i)], ramp[static_cast<size_t>(begin + i)]);
  }
  ASSERT_EQ(read(path, 0.5, {1.5, 3}), "");
  EXPECT_EQ(out_.front(), ramp[12000 + 2000]) << "in the middle of a part";
  ASSERT_EQ(read(path, 0.5, {4.5, 0}), "");
  EXPECT_EQ(out_[3999], ramp.back());
  EXPECT_EQ(out_[4000], 0) << "silence follows what is shorter";
  EXPECT_EQ(read(path, 0.5, {5, 6}), "the part from 5 s on lies behind its end: it has 5 s");
}

TEST_F(SoundFileTest, AnExcerptOfACompressedFileIsASliceOfTheWhole) {
  // A frame of mp3_reservoir needs bits of more frames before it than libsndfile decodes after a seek.
  struct Case {
    const char* name;
    int64_t rate;
  };
  for (const Case& c : {Case{"flac", 8000}, {"ogg", 8000}, {"mp3", 16000}, {"mp3_reservoir", 24000}}) {
    const std::string path = std::string(STOKER_SOURCE_DIR "/tests/fuzz/corpus/sound/") + c.name;
    options_.sample_rate = c.rate;
    options_.seconds = sound_seconds({path, "", stamp_of(path)});
    ASSERT_GT(options_.seconds, 0.1) << path;
    ASSERT_EQ(read(path, 0), "") << path;
    const std::vector<float> whole = out_;
    options_.seconds = 0.05;
    const auto count = static_cast<size_t>(options_.samples());
    for (int i = 0; i <= 10; ++i) {
      ASSERT_EQ(read(path, i / 10.0), "") << path;
      const auto begin = static_cast<size_t>(std::llround(i / 10.0 * static_cast<double>(whole.size() - count)));
      for (size_t k = 0; k < count; ++k) ASSERT_NEAR(out_[k], whole[begin + k], 1e-6) << c.name << " " << i << " " << k;
    }
  }
}

TEST_F(SoundFileTest, ResampledTonesAreTones) {
  for (const int rate : {4000, 11025, 16000, 44100, 48000}) {
    options_.seconds = 1;
    const std::string path = write(wav_of(tone_of(440, 3, rate), rate, 1, WavKind::float32));
    for (const auto& [position, begin] : {std::pair{0.0, 0}, {0.5, 8000}, {1.0, 16000}}) {
      const std::vector<float> expected = tone_of(440, 3, 8000);
      ASSERT_EQ(read(path, position), "");
      for (size_t i = 400; i < 7600; ++i) {
        ASSERT_NEAR(out_[i], expected[static_cast<size_t>(begin) + i], 2e-4) << rate << " " << begin << " " << i;
      }
    }
  }
}

TEST_F(SoundFileTest, TheSameExcerptHasTheSameBitsWhateverCameBefore) {
  const std::string path = folder_.write("b.wav", wav_of(tone_of(300, 2, 44100), 44100));
  ASSERT_EQ(read(path, 0.3), "");
  const std::vector<float> first = out_;
  ASSERT_EQ(read(path, 0.9), "");
  ASSERT_EQ(read(write(wav_of(tone_of(300, 2, 16000), 16000))), "");
  ASSERT_EQ(read(path, 0.3), "");
  EXPECT_EQ(out_, first);
}

TEST_F(SoundFileTest, WhatIsNoSoundIsNamed) {
  EXPECT_EQ(read(write("")), "the file is empty");
  EXPECT_EQ(read(write(wav_of({}, 8000))), "it holds no sound");
  EXPECT_NE(read(write(std::string(5000, 'x'))).find("is not read as a sound: "), std::string::npos);
  EXPECT_NE(read(folder_ / "none.wav").find("No such file"), std::string::npos);
  EXPECT_NE(read(folder_.path()).find("a directory"), std::string::npos);
  EXPECT_EQ(read(write(wav_of({0.5f, std::numeric_limits<float>::infinity()}, 8000, 1, WavKind::float32))),
            "it holds a number that is not finite");
  EXPECT_EQ(read(write(wav_of({0.5f, -2e30f}, 8000, 1, WavKind::float32))),
            "it holds the number -2e+30; sounds lie between -1 and 1");
  EXPECT_NE(read(write(wav_of({0.5f}, 20))).find("its rate is 20 Hz"), std::string::npos);
  const std::string path = write(wav_of({0.5f}, 8000));
  FileStamp stamp = stamp_of(path);
  stamp.size += 1;
  EXPECT_EQ(read_sound({path, "", stamp, {}}, 0, options_, scratch_, out_.data()), "it has changed since the scan");
}

TEST_F(SoundFileTest, AHeaderThatPromisesMoreIsNotBelieved) {
  options_.seconds = 600;
  const std::string cause = read(write(wav_of(tone_of(440, 0.1, 8000), 8000, 1, WavKind::int16, 0xFFFFFF00)));
  EXPECT_TRUE(cause.empty() || cause.find("cut short") == 0) << cause;
  EXPECT_LE(scratch_.mono.capacity(), 600u * 8000u);
}

TEST_F(SoundFileTest, AWavFileThatIsCutShortIsDamagedAndItsRestCanBeHad) {
  options_.seconds = 0.1;
  const std::string whole = wav_of(tone_of(440, 0.5, 8000), 8000);
  for (const size_t missing : {size_t{1}, size_t{2}, size_t{4000}}) {
    const std::string path = write(whole.substr(0, whole.size() - missing));
    for (const double position : {0.0, 0.5, 1.0}) {
      EXPECT_EQ(read(path, position).rfind("cut short: it has ", 0), 0u) << missing << " " << position;
      EXPECT_TRUE(scratch_.has_rest);
      EXPECT_NE(out_[7], 7.0f) << "what is there was written";
    }
    EXPECT_NE(read(path).find("of the 8,044 bytes that its header promises"), std::string::npos) << read(path);
  }
  for (const std::string more : {"", "x", "LIST and more behind the sound"}) {
    EXPECT_EQ(read(write(whole + more)), "") << more;
    EXPECT_FALSE(scratch_.has_rest);
  }
  std::string odd = wav_of(tone_of(440, 0.5, 8000), 8000);
  odd.replace(0, 4, "RIFF");
  odd.insert(36, "LIST" + wav_bytes(3, 4) + "abc" + std::string(1, '\0'));
  EXPECT_EQ(read(write(odd)), "") << "chunks before it, padded to even sizes";
  EXPECT_NE(read(write(odd.substr(0, odd.size() - 1))), "");
  for (const uint64_t unknown : {uint64_t{0xffffffff}, uint64_t{0x7ffff000}}) {
    EXPECT_EQ(read(write(wav_of(tone_of(440, 0.5, 8000), 8000, 1, WavKind::int16, static_cast<int64_t>(unknown)))), "")
        << "a stream, whose length was not known";
  }
}

/// A file that libsndfile writes.
std::string encoded(int format, const std::vector<float>& samples, const std::string& path) {
  SF_INFO info{};
  info.samplerate = 16000;
  info.channels = 1;
  info.format = format;
  SNDFILE* const file = ::sf_open(path.c_str(), SFM_WRITE, &info);
  if (file == nullptr) return "";  // a libsndfile that does not write it
  ::sf_writef_float(file, samples.data(), static_cast<sf_count_t>(samples.size()));
  ::sf_close(file);
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

TEST_F(SoundFileTest, CompressedFilesThatAreCutShortAreDamagedWhereverTheExcerptLies) {
  options_.seconds = 0.1;
  options_.sample_rate = 16000;
  std::vector<float> samples = tone_of(440, 4, 16000);
  for (size_t i = 0; i < samples.size(); ++i) samples[i] += 0.1f * std::sin(static_cast<float>(i * i % 1009));
  int tried = 0;
  for (const int format : {SF_FORMAT_FLAC | SF_FORMAT_PCM_16, SF_FORMAT_OGG | SF_FORMAT_VORBIS,
                           SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III}) {
    const std::string whole = encoded(format, samples, folder_ / "made");
    if (whole.empty()) continue;
    ++tried;
    EXPECT_EQ(read(write(whole), 1), "") << std::hex << format;
    for (const double share : {0.3, 0.6, 0.95}) {
      const auto size = static_cast<size_t>(share * static_cast<double>(whole.size()));
      const std::string path = write(whole.substr(0, size));
      ::testing::internal::CaptureStderr();
      const std::string cause = read(path, 0);  // libsndfile 1.2 finds no frame in some Ogg files that are cut
      EXPECT_TRUE(cause.rfind("cut short", 0) == 0 || cause == "it holds no sound")
          << std::hex << format << " " << share << " " << cause;
      read(path, 1);
      EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
    }
  }
  EXPECT_GE(tried, 2);
}

TEST_F(SoundFileTest, DamageIsPrintedByNobodyElse) {
  options_.seconds = 1;
  options_.sample_rate = 16000;
  std::string made = encoded(SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III, tone_of(440, 4, 16000), folder_ / "made");
  if (made.empty()) GTEST_SKIP() << "this libsndfile writes no MP3";
  ::testing::internal::CaptureStderr();
  for (size_t i = 600; i < made.size(); i += 7) made[i] = static_cast<char>(i * 31);
  for (const double position : {0.0, 0.5, 1.0}) read(write(made), position);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST_F(SoundFileTest, ACopyIsReadWhereItCanBe) {
  options_.seconds = 0.1;
  const std::string path = write(wav_of(tone_of(440, 0.1, 8000), 8000));
  ASSERT_EQ(read(path), "");
  const FileStamp stamp = stamp_of(path);
  EXPECT_EQ(read_sound({path, folder_ / "gone", stamp, {}}, 0, options_, scratch_, out_.data()), "");
  EXPECT_NE(read_sound({folder_ / "gone", folder_ / "gone", stamp, {}}, 0, options_, scratch_, out_.data()), "");
}

}  // namespace
}  // namespace stoker::data
