// SPDX-License-Identifier: Apache-2.0
// Excerpts of sound files, and files that are none.
#include "data/sound/sound_file.h"

#include <gtest/gtest.h>

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
