// SPDX-License-Identifier: Apache-2.0
// Folders and lists of sounds, as a run opens them.
#include "data/sound/sound_source.h"

#include <gtest/gtest.h>

#include <set>

#include "core/format.h"
#include "core/hash.h"
#include "data/loader/loader.h"
#include "data/open_datasets.h"
#include "made_data.h"
#include "made_shards.h"
#include "made_sound.h"

namespace stoker::data {
namespace {

class SoundSourceTest : public ::testing::Test {
 protected:
  SoundSourceTest() {
    options_.data_dir = folder_.path();
    options_.sound.sample_rate = 8000;
    options_.sound.n_fft = 200;
    options_.sound.mels = 20;
    options_.sound.seconds = 0.5;
  }

  void write_split(const std::string& split) const {
    for (int i = 0; i < 4; ++i) {
      const std::string tone = wav_of(tone_of(200 + 30 * i, 1 + 0.1 * i, 16000), 16000, 1 + i % 2);
      folder_.write(core::format("{}/low/{}.wav", split, i), tone);
      folder_.write(core::format("{}/high/speaker/{}.WAV", split, i), wav_of(tone_of(900 + 70 * i, 0.8, 8000), 8000));
    }
  }
  std::shared_ptr<const Source> opened() const { return open_split(options_, "train"); }

  static std::string problem_of(const Source& source, int64_t index) {
    std::vector<uint8_t> buffer;
    SampleContent content;
    return source.read(index, buffer, content);
  }
  /// The digest of two epochs, or of each alone.
  static std::string digest_of(const std::shared_ptr<const Source>& source, int64_t workers, bool training,
                               std::initializer_list<int64_t> epochs) {
    config::ResolvedDataOptions data;
    data.mean = {0};
    const config::ResolvedAugmentOptions augment;
    LoaderSettings settings;
    settings.batch_size = 3;
    settings.num_workers = workers;
    settings.seed = 3;
    Loader loader(source, make_transform_plan(data, augment, training, source->fixed_shape()), settings);
    core::Hasher hasher;
    for (const int64_t epoch : epochs) {
      loader.begin_epoch(epoch);
      for (HostBatch batch; loader.next(batch);) {
        hasher.add(batch.images.data_ptr(), static_cast<uint64_t>(batch.images.numel()) * 4);
        loader.release(batch);
      }
    }
    return hasher.hex();
  }

  TempFolder folder_;
  config::DataOptions options_;
};

TEST_F(SoundSourceTest, ClassFoldersOfSoundsAreSpectrograms) {
  write_split("train");
  folder_.write("train/low/cover.png", png_of({1, 2, 3}, 1, 1, 3));
  const auto source = opened();
  ASSERT_EQ(source->size(), 8);
  EXPECT_EQ(source->class_names(), (std::vector<std::string>{"high", "low"}));
  EXPECT_EQ(source->name(0), folder_ / "train/high/speaker/0.WAV");
  SampleShape shape = image_shape(20, 41, 1);
  shape.element = Element::float32;
  EXPECT_EQ(source->fixed_shape(), shape);
  for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(problem_of(*source, i), "");
  EXPECT_EQ(stored_bytes(*source, 0), -1) << "no cache keeps files of which excerpts are read";
}

TEST_F(SoundSourceTest, TrainingSeesOtherExcerptsInEveryEpochForAnyNumberOfWorkers) {
  write_split("train");
  const auto source = opened();
  std::set<std::string> both;
  for (const int64_t workers : {0, 1, 5}) both.insert(digest_of(source, workers, /*training=*/true, {0, 1}));
  EXPECT_EQ(both.size(), 1u);
  EXPECT_NE(digest_of(source, 1, true, {0}), digest_of(source, 1, true, {1}));
  EXPECT_EQ(digest_of(source, 1, false, {0}), digest_of(source, 1, false, {1}));
}

TEST_F(SoundSourceTest, TheFingerprintIsOfTheOptionsToo) {
  write_split("train");
  std::set<std::string> fingerprints = {opened()->fingerprint()};
  options_.sound.mels = 21;
  fingerprints.insert(opened()->fingerprint());
  options_.sound.hop = 50;
  fingerprints.insert(opened()->fingerprint());
  options_.sound.seconds = 0.6;
  fingerprints.insert(opened()->fingerprint());
  options_.sound.mel_scale = config::MelScale::slaney;
  fingerprints.insert(opened()->fingerprint());
  options_.sound.mel_norm = config::MelNorm::slaney;
  fingerprints.insert(opened()->fingerprint());
  EXPECT_EQ(fingerprints.size(), 6u);
}

TEST_F(SoundSourceTest, AListNamesPartsOfFiles) {
  write_split("train");
  folder_.write("train.csv",
                "path,begin,end,label\ntrain/low/0.wav,0,0.4,a\ntrain/low/0.wav,0.4,,b\ntrain/low/1.wav,,,a\n");
  options_.dataset = config::DatasetType::csv;
  const auto source = opened();
  ASSERT_EQ(source->size(), 3);
  EXPECT_EQ(source->relative_name(0), "train/low/0.wav#0-0.4");
  EXPECT_EQ(source->relative_name(1), "train/low/0.wav#0.4-");
  EXPECT_EQ(source->relative_name(2), "train/low/1.wav");
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(problem_of(*source, i), "");
  EXPECT_EQ(source->label(1), 1);
  for (const auto& [row, cause] : {std::pair{"train/low/0.wav,x,1,a", "begin 'x' is no number of seconds"},
                                   {"train/low/0.wav,2,1,a", "the sound ends at 1 s and begins at 2 s"}}) {
    folder_.write("train.csv", core::format("path,begin,end,label\ntrain/low/1.wav,,,b\n{}\n", row));
    try {
      opened();
      FAIL() << row;
    } catch (const core::Error& error) {
      EXPECT_NE(std::string(error.what()).find(cause), std::string::npos) << error.what();
    }
  }
}

TEST_F(SoundSourceTest, BeginAndEndAreNoTargets) {
  write_split("train");
  folder_.write("train.csv", "path,begin,end,x\ntrain/low/0.wav,0,0.4,1.5\ntrain/low/0.wav,0.4,0.9,2.5\n");
  options_.dataset = config::DatasetType::csv;
  options_.task = config::TaskKind::regression;
  EXPECT_EQ(opened()->target_names(), (std::vector<std::string>{"x"}));
}

TEST_F(SoundSourceTest, WhatIsDamagedIsABadSample) {
  write_split("train");
  folder_.write("train/low/2.wav", std::string());
  folder_.write("train/low/3.wav", std::string("RIFFxxxxWAVE"));
  const auto source = opened();
  EXPECT_EQ(problem_of(*source, 6), "the file is empty");
  EXPECT_NE(problem_of(*source, 7), "");
  EXPECT_EQ(problem_of(*source, 5), "");
}

TEST_F(SoundSourceTest, OptionsThatDoNotGoTogetherAreRefused) {
  write_split("train");
  const auto problem = [&] {
    try {
      opened();
    } catch (const core::Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  options_.sound.n_fft = 8000;
  EXPECT_EQ(problem(), "--seconds 0.5 are 4,000 samples at 8000 Hz, but --n-fft 8000 needs more than 4000");
  options_.sound.n_fft = 200;
  options_.sound.hop = 1;
  options_.sound.mels = 4096;
  options_.sound.seconds = 10;
  EXPECT_EQ(problem(), "--seconds 10 make spectrograms of 4096 x 80001 numbers; 67108864 are the most");
}

Bytes numbers_of(const Source& source, int64_t index) {
  std::vector<uint8_t> buffer;
  SampleContent content;
  EXPECT_EQ(source.read(index, buffer, content), "") << source.name(index);
  return {content.bytes, content.bytes + content.size};
}

TEST_F(SoundSourceTest, ShardsHoldTheSameSoundsAsFiles) {
  write_split("train");
  write_split("val");
  folder_.write("train/low/a.b.wav", wav_of(tone_of(500, 1, 8000), 8000));
  const auto loose = opened();
  std::vector<std::string> notes;
  std::vector<SplitToPack> splits;
  for (auto& [name, source] : open_whole_splits(options_, {}, notes)) splits.push_back({name, source});
  const TempFolder packed, fast;
  EXPECT_EQ(pack(splits, pack_settings(packed.path(), 3), [](const PackProgress&) {}).images, 17);
  options_.data_dir = packed.path();
  for (const std::string& stage_dir : {std::string(), fast.path()}) {
    options_.stage_dir = stage_dir;
    const auto shards = opened();
    EXPECT_EQ(shards->fingerprint(), loose->fingerprint());
    ASSERT_EQ(shards->size(), 9);
    for (int64_t i = 0; i < 9; ++i) {
      EXPECT_EQ(shards->relative_name(i), loose->relative_name(i));
      EXPECT_EQ(numbers_of(*shards, i), numbers_of(*loose, i)) << i;
    }
    EXPECT_EQ(digest_of(shards, 2, /*training=*/true, {0, 1}), digest_of(loose, 2, true, {0, 1}));
  }
}

TEST_F(SoundSourceTest, ShardsOfOthersHoldSoundsAndLabels) {
  const std::string low = wav_of(tone_of(300, 0.6, 8000), 8000), high = wav_of(tone_of(900, 0.6, 8000), 8000);
  folder_.write("train.tar",
                archive_of({{"a.WAV", low}, {"a.cls", "1"}, {"b.json", R"({"label": 0})"}, {"b.wav", high}}));
  folder_.write("low.wav", low);
  const auto source = opened();
  ASSERT_EQ(source->size(), 2);
  EXPECT_EQ(source->label(0), 1);
  EXPECT_EQ(source->label(1), 0);
  EXPECT_EQ(numbers_of(*source, 0), numbers_of(*open_loose_images(folder_ / "low.wav", true, options_), 0));
}

TEST_F(SoundSourceTest, AShardThatNoLongerFitsItsIndexMakesBadSounds) {
  const std::string tone = wav_of(tone_of(300, 0.6, 8000), 8000);
  folder_.write("train.tar", archive_of({{"a.wav", tone}, {"a.cls", "0"}, {"b.wav", tone}, {"b.cls", "0"}}));
  write_missing_indexes(folder_.path(), [](const std::string&) {});
  folder_.write("train.tar", archive_of({{"a.cls", "0"}, {"a.wav", tone}, {"b.wav", tone}, {"b.cls", "0"}}));
  const auto source = opened();
  EXPECT_EQ(problem_of(*source, 0), "the shard has changed since its index was made");
  EXPECT_EQ(problem_of(*source, 1), "");
}

TEST_F(SoundSourceTest, APartOfAFileIsNotPacked) {
  write_split("train");
  folder_.write("train.csv", "path,begin,end,label\ntrain/low/0.wav,0,0.4,a\ntrain/low/1.wav,,,b\n");
  options_.dataset = config::DatasetType::csv;
  const auto source = opened();
  std::vector<uint8_t> buffer;
  SampleContent content;
  EXPECT_EQ(source->excerpts()->read_whole(0, buffer, content),
            "a part of a file is not packed: train on the loose files");
  EXPECT_EQ(source->excerpts()->read_whole(1, buffer, content), "");
}

TEST_F(SoundSourceTest, LooseSoundsArePredictedAsTheRunHasThem) {
  write_split("new");
  const auto source = open_loose_images(folder_ / "new", true, options_);
  ASSERT_EQ(source->size(), 8);
  EXPECT_EQ(source->fixed_shape().width, 41);
  EXPECT_EQ(source->label(0), -1);
  EXPECT_EQ(problem_of(*source, 0), "");
  const std::vector<std::string> pattern = {folder_ / "new/low/*.wav"};
  EXPECT_EQ(open_loose_images(pattern, true, options_)->size(), 4);
}

}  // namespace
}  // namespace stoker::data
