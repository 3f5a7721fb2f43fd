// SPDX-License-Identifier: Apache-2.0
// Packing: the same samples come out that went in, the same bytes whatever happened on the way.
#include "data/pack/pack.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "core/hash.h"
#include "core/log.h"
#include "core/system/file.h"
#include "core/system/stop_signal.h"
#include "data/loader/loader.h"
#include "data/open_datasets.h"
#include "data/shard/shard_index.h"
#include "made_shards.h"

namespace stoker::data {
namespace {

namespace fs = std::filesystem;

/// A loose data set and a folder beside it for its shards.
class PackTest : public ::testing::Test {
 protected:
  void SetUp() override {
    core::set_console_level(core::LogLevel::error);
    write_loose_images(loose_);
  }
  void TearDown() override {
    core::request_stop(0);
    core::set_console_level(core::LogLevel::info);
  }

  const TempFolder loose_, out_;
  const std::string packed_ = out_ / "packed";
};

TEST_F(PackTest, ShardsHoldTheSameSamplesInTheSameOrderWithTheSameFingerprint) {
  const PackReport report = pack_folder(loose_.path(), pack_settings(packed_));
  EXPECT_EQ(report.images, 29);
  EXPECT_EQ(report.shards, 4);
  EXPECT_FALSE(report.was_complete);
  const Datasets before = open_datasets(options_for(loose_.path())), after = open_datasets(options_for(packed_));
  for (const auto& [loose, packed] : {std::pair(before.train, after.train), std::pair(before.val, after.val)}) {
    EXPECT_EQ(packed->class_names(), (std::vector<std::string>{"cat", "dog"}));
    EXPECT_EQ(content_digest(*packed), content_digest(*loose));
    EXPECT_EQ(packed->fingerprint(), loose->fingerprint());
  }
  EXPECT_EQ(run_ends(*after.train), (std::vector<int64_t>{8, 16, 23}));
}

TEST_F(PackTest, HoldOutSplitsOfShardsAndLooseFilesAgree) {
  pack_folder(loose_.path(), pack_settings(packed_));
  config::DataOptions loose = options_for(loose_.path()), packed = options_for(packed_);
  loose.val_fraction = packed.val_fraction = 0.3;
  const Datasets before = open_datasets(loose), after = open_datasets(packed);
  EXPECT_EQ(content_digest(*after.train), content_digest(*before.train));
  EXPECT_EQ(content_digest(*after.val), content_digest(*before.val));
  EXPECT_EQ(after.train->fingerprint(), before.train->fingerprint());
  EXPECT_EQ(run_ends(*after.train).back(), after.train->size());
  EXPECT_EQ(run_ends(*after.train).size(), 3u);
}

/// Digest of two epochs as a training sees them.
std::string stream_digest(const std::string& data_dir, int64_t workers, int64_t shuffle_buffer) {
  TransformPlan plan;
  plan.training = true;
  plan.shape = square_shape(16, 3);
  plan.train_crop = config::TrainCrop::random_resized;
  plan.hflip = 0.5;
  LoaderSettings settings;
  settings.batch_size = 4;
  settings.num_workers = workers;
  settings.shuffle = true;
  settings.shuffle_buffer = shuffle_buffer;
  settings.seed = 42;
  Loader loader(train_of(data_dir), plan, settings);
  core::Hasher hasher;
  for (const int64_t epoch : {0, 1}) {
    loader.begin_epoch(epoch);
    for (HostBatch batch; loader.next(batch); loader.release(batch)) {
      hasher.add(batch.images.data_ptr<uint8_t>(), static_cast<uint64_t>(batch.images.numel()));
      hasher.add(batch.labels.data_ptr<int64_t>(), static_cast<uint64_t>(batch.labels.numel()) * 8);
      hasher.add(batch.samples.data(), batch.samples.size() * 8);
    }
  }
  return hasher.hex();
}

TEST_F(PackTest, TheTensorStreamIsThatOfTheLooseFilesForAnyNumberOfWorkers) {
  pack_folder(loose_.path(), pack_settings(packed_));
  const std::string wanted = stream_digest(loose_.path(), 0, 0);
  for (const int64_t workers : {0, 1, 2, 7, 16}) {
    EXPECT_EQ(stream_digest(packed_, workers, 0), wanted) << workers;
  }
}

TEST_F(PackTest, AShuffleBufferGivesTheSameStreamForAnyNumberOfWorkers) {
  pack_folder(loose_.path(), pack_settings(packed_));
  const std::string wanted = stream_digest(packed_, 0, 5);
  EXPECT_NE(wanted, stream_digest(packed_, 0, 0));
  for (const int64_t workers : {1, 2, 7, 16}) EXPECT_EQ(stream_digest(packed_, workers, 5), wanted) << workers;
}

TEST_F(PackTest, TheBytesAreTheSameForAnyNumberOfThreads) {
  pack_folder(loose_.path(), pack_settings(packed_, 8, 0));
  for (const int64_t threads : {1, 2, 7}) {
    const std::string other = out_ / ("packed" + std::to_string(threads));
    pack_folder(loose_.path(), pack_settings(other, 8, threads));
    EXPECT_EQ(files_of(other), files_of(packed_)) << threads;
  }
}

TEST_F(PackTest, TheSameCommandAgainFindsItPacked) {
  pack_folder(loose_.path(), pack_settings(packed_));
  const auto before = files_of(packed_);
  const PackReport again = pack_folder(loose_.path(), pack_settings(packed_));
  EXPECT_TRUE(again.was_complete);
  EXPECT_EQ(again.images, 29);
  EXPECT_EQ(files_of(packed_), before);
}

TEST_F(PackTest, AStopAtAnyImageLosesNothingButTheOpenShard) {
  pack_folder(loose_.path(), pack_settings(packed_));
  const auto wanted = files_of(packed_);
  const std::string other = out_ / "stopped";
  std::vector<std::string> notes;
  std::vector<SplitToPack> splits;
  for (auto& [name, source] : open_whole_splits(options_for(loose_.path()), {}, notes))
    splits.push_back({name, source});
  for (const int64_t stop_at : {1, 7, 8, 9, 17, 22, 23, 24, 28}) {
    fs::remove_all(other);
    EXPECT_THROW(pack(splits, pack_settings(other),
                      [&](const PackProgress& progress) {
                        if (progress.images_done == stop_at) core::request_stop(SIGTERM);
                      }),
                 core::StopRequested)
        << stop_at;
    core::request_stop(0);
    error_of([&] { open_datasets(options_for(other)); });  // half a pack is not trained on
    const PackReport report = pack(splits, pack_settings(other), [](const PackProgress&) {});
    EXPECT_FALSE(report.was_complete) << stop_at;
    EXPECT_EQ(report.kept_shards, stop_at >= 24 ? 3 : stop_at >= 17 ? 2 : stop_at >= 9 ? 1 : 0) << stop_at;
    EXPECT_EQ(files_of(other), wanted) << stop_at;
  }
}

TEST_F(PackTest, AnUnfinishedPackIsNotTrainedOn) {
  pack_folder(loose_.path(), pack_settings(packed_));
  PackManifest manifest = *read_pack_manifest(packed_);
  manifest["train"].complete = false;
  write_pack_manifest(packed_, manifest);
  const core::Error error = error_of([&] { open_datasets(options_for(packed_)); });
  EXPECT_EQ(error.kind(), core::ErrorKind::data);
  EXPECT_NE(std::string(error.what()).find("split 'train' is not packed to its end"), std::string::npos)
      << error.what();
}

TEST_F(PackTest, AFinishedShardThatWasDamagedIsWrittenAgain) {
  pack_folder(loose_.path(), pack_settings(packed_));
  const auto wanted = files_of(packed_);
  std::string shard = core::read_file(packed_ + "/train-000001.tar", 1 << 24);
  shard[700] = static_cast<char>(shard[700] ^ 1);
  out_.write("packed/train-000001.tar", shard);
  PackManifest manifest = *read_pack_manifest(packed_);
  manifest["train"].complete = false;
  write_pack_manifest(packed_, manifest);
  const PackReport report = pack_folder(loose_.path(), pack_settings(packed_));
  EXPECT_EQ(report.kept_shards, 3);
  EXPECT_EQ(files_of(packed_), wanted);
}

TEST_F(PackTest, AMissingShardIsNoticedByTrainingAndPackedAgain) {
  pack_folder(loose_.path(), pack_settings(packed_));
  const auto wanted = files_of(packed_);
  fs::remove(packed_ + "/train-000002.tar");
  EXPECT_NE(std::string(error_of([&] { train_of(packed_); }).what())
                .find("split 'train' has 16 images in 2 shards; pack.json gives 23 in 3"),
            std::string::npos);
  EXPECT_FALSE(pack_folder(loose_.path(), pack_settings(packed_)).was_complete);
  EXPECT_EQ(files_of(packed_), wanted);
}

TEST_F(PackTest, ShardsEndAtTheirSizeInBytesOrImages) {
  PackSettings settings = pack_settings(packed_, 0);
  settings.shard_bytes = 20'000;
  const PackReport report = pack_folder(loose_.path(), settings);
  EXPECT_GT(report.shards, 4);
  int64_t largest = 0;
  for (const std::string& path : shards_in(packed_, "train")) {
    const auto bytes = static_cast<int64_t>(fs::file_size(path));
    EXPECT_LE(bytes, 20'000) << path;
    largest = std::max(largest, bytes);
  }
  EXPECT_GT(largest, 14'000);
  EXPECT_EQ(content_digest(*train_of(packed_)), content_digest(*train_of(loose_.path())));
  settings.directory = out_ / "one";
  settings.shard_bytes = 1;
  EXPECT_EQ(pack_folder(loose_.path(), settings).shards, 29);
}

TEST_F(PackTest, OtherDataOrSettingsAreNotMixedIntoAPack) {
  pack_folder(loose_.path(), pack_settings(packed_));
  const core::Error settings = error_of([&] { pack_folder(loose_.path(), pack_settings(packed_, 9)); });
  EXPECT_EQ(settings.kind(), core::ErrorKind::config);
  EXPECT_NE(std::string(settings.what()).find("other data or with other settings (split 'train')"), std::string::npos);
  loose_.write("train/dog/new.jpg", jpeg_of(pattern_pixels(9, 9, 3), 9, 9));
  EXPECT_EQ(error_of([&] { pack_folder(loose_.path(), pack_settings(packed_)); }).kind(), core::ErrorKind::config);
  for (const char* const split : {"train", "val"}) {
    loose_.write(std::string(split) + "/ant/new.jpg", jpeg_of(pattern_pixels(9, 9, 3), 9, 9));
  }
  EXPECT_NE(std::string(error_of([&] { pack_folder(loose_.path(), pack_settings(packed_)); }).what())
                .find("data with other classes"),
            std::string::npos);
}

TEST_F(PackTest, ForeignShardsAreNotOverwritten) {
  out_.write("packed/train-000000.tar", archive_of({{"a.cls", "0"}, {"a.jpg", "x"}}));
  const auto before = files_of(packed_);
  EXPECT_EQ(error_of([&] { pack_folder(loose_.path(), pack_settings(packed_)); }).kind(),
            core::ErrorKind::cannot_create);
  EXPECT_EQ(files_of(packed_), before);
}

TEST_F(PackTest, AFolderInUseIsRefused) {
  fs::create_directories(packed_);
  const core::LockFile lock(packed_ + "/.lock");
  EXPECT_EQ(error_of([&] { pack_folder(loose_.path(), pack_settings(packed_)); }).kind(),
            core::ErrorKind::run_dir_in_use);
}

TEST_F(PackTest, BadImagesStopThePackOrAreLeftOut) {
  loose_.write("train/cat/bad.jpg", std::string("no image"));
  const core::Error error = error_of([&] { pack_folder(loose_.path(), pack_settings(packed_)); });
  EXPECT_EQ(error.kind(), core::ErrorKind::data);
  EXPECT_NE(std::string(error.what()).find("bad image " + loose_.path() + "/train/cat/bad.jpg"), std::string::npos);
  PackSettings settings = pack_settings(packed_);
  settings.on_bad_image = config::OnBadImage::skip;
  EXPECT_NE(std::string(error_of([&] { pack_folder(loose_.path(), settings); }).what())
                .find("1 bad image, more than the 0 of --on-bad-image skip"),
            std::string::npos);
  settings.max_bad = 1;
  const PackReport report = pack_folder(loose_.path(), settings);
  EXPECT_EQ(report.bad_images, 1);
  EXPECT_EQ(report.images, 29);
  fs::remove(loose_ / "train/cat/bad.jpg");
  EXPECT_EQ(content_digest(*train_of(packed_)), content_digest(*train_of(loose_.path())));
}

TEST_F(PackTest, AnUnfinishedPackOfOtherDataIsReplaced) {
  for (int i = 0; i < 30; ++i)
    loose_.write("train/dog/z" + std::to_string(i) + ".jpg", jpeg_of(pattern_pixels(9, 9, 3), 9, 9));
  loose_.write("train/dog/zz.jpg", std::string("no image"));
  error_of([&] { pack_folder(loose_.path(), pack_settings(packed_, 3)); });
  for (int i = 0; i < 30; ++i) fs::remove(loose_ / ("train/dog/z" + std::to_string(i) + ".jpg"));
  fs::remove(loose_ / "train/dog/zz.jpg");
  pack_folder(loose_.path(), pack_settings(packed_));
  pack_folder(loose_.path(), pack_settings(out_ / "fresh"));
  EXPECT_EQ(files_of(packed_), files_of(out_ / "fresh"));
}

TEST_F(PackTest, IdxPixelsBecomePngsAndTheSameStream) {
  const TempFolder idx;
  Bytes pixels = pattern_pixels(28, 28 * 20, 1), labels;
  for (uint8_t i = 0; i < 20; ++i) labels.push_back(i % 10);
  idx.write("train-images-idx3-ubyte", idx_images(20, 28, 28, pixels));
  idx.write("train-labels-idx1-ubyte", idx_labels(20, labels));
  pack_folder(idx.path(), pack_settings(packed_));
  EXPECT_EQ(train_of(packed_)->class_names(), train_of(idx.path())->class_names());
  EXPECT_EQ(train_of(packed_)->relative_name(17), "#17");
  for (const int64_t workers : {0, 2}) {
    EXPECT_EQ(stream_digest(packed_, workers, 0), stream_digest(idx.path(), workers, 0));
  }
}

TEST_F(PackTest, APackCanBePackedAgain) {
  pack_folder(loose_.path(), pack_settings(packed_));
  pack_folder(packed_, pack_settings(out_ / "again"));
  EXPECT_EQ(files_of(out_ / "again"), files_of(packed_));
}

TEST_F(PackTest, VerifyFindsNothingWrongAndThenEveryDamage) {
  const auto verify = [&] { return verify_pack(packed_, [](const std::string&) {}); };
  pack_folder(loose_.path(), pack_settings(packed_));
  EXPECT_TRUE(verify().problems.empty());
  EXPECT_EQ(verify().images, 29);
  const std::string path = packed_ + "/train-000001.tar", whole = core::read_file(path, 1 << 24);
  for (size_t at = 0; at < whole.size(); at += 997) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    out_.write("packed/train-000001.tar", damaged);
    ASSERT_EQ(verify().problems.size(), 1u) << at;
    EXPECT_EQ(verify().problems[0].rfind(path, 0), 0u);
  }
  out_.write("packed/train-000001.tar", whole.substr(0, whole.size() - 512));
  EXPECT_EQ(verify().problems.size(), 1u);
  fs::remove(path);
  EXPECT_NE(verify().problems.at(0).find("split 'train' has 2 shards, pack.json gives 3"), std::string::npos);
}

TEST_F(PackTest, LostIndexesAreWrittenAgainAndSoundOnesKept) {
  pack_folder(loose_.path(), pack_settings(packed_));
  const ShardIndex before = read_shard_index(packed_ + "/train-000001.tar.index");
  fs::remove(packed_ + "/train-000001.tar.index");
  out_.write("packed/train-000002.tar.index", std::string("damaged"));
  EXPECT_EQ(error_of([&] { train_of(packed_); }).kind(), core::ErrorKind::data);
  const IndexReport report = write_missing_indexes(packed_, [](const std::string&) {});
  EXPECT_EQ(report.written, 2);
  EXPECT_EQ(report.kept, 2);
  const ShardIndex after = read_shard_index(packed_ + "/train-000001.tar.index");
  EXPECT_EQ(after.names, before.names);
  EXPECT_EQ(after.shard_digest, before.shard_digest);
  EXPECT_EQ(content_digest(*train_of(packed_)), content_digest(*train_of(loose_.path())));
  EXPECT_EQ(train_of(packed_)->fingerprint(), train_of(loose_.path())->fingerprint());
}

TEST_F(PackTest, AnIndexIsNotWrittenOverADamagedArchive) {
  pack_folder(loose_.path(), pack_settings(packed_));
  std::string damaged = core::read_file(packed_ + "/train-000001.tar", 1 << 24);
  damaged[600] = static_cast<char>(damaged[600] ^ 4);
  out_.write("packed/train-000001.tar", damaged);
  EXPECT_NE(std::string(error_of([&] { write_missing_indexes(packed_, [](const std::string&) {}); }).what())
                .find("train-000001.tar is damaged: its digest is not that of its index"),
            std::string::npos);
}

}  // namespace
}  // namespace stoker::data
