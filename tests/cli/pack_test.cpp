// SPDX-License-Identifier: Apache-2.0
// `train pack` as a user runs it: what it prints, what it leaves, and what it refuses.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "bad_input.h"
#include "exit_codes.h"

namespace stoker::cli {
namespace {

namespace fs = std::filesystem;

Ended succeed(const Workplace& work, const Words& words) {
  const Ended ended = run(words, work.path());
  EXPECT_EQ(ended.exit_code, 0) << story_of(words, ended);
  return ended;
}

bool contains(const Ended& ended, const std::string& text) {
  return (ended.out + ended.err).find(text) != std::string::npos;
}

/// The content of a pack, without the lock, which names its last holder.
std::string pack_listing(const Workplace& work, const std::string& folder) {
  fs::remove(work / (folder + "/.lock"));
  const std::string path = work / folder;
  std::string listing = listing_of(path);
  for (size_t at; (at = listing.find(path)) != std::string::npos;) listing.erase(at, path.size());
  return listing;
}

/// A file that a run leaves: its weights after the last update.
std::string weights_of(const Workplace& work, const std::string& run_dir) {
  return content_of_file(work / (run_dir + "/checkpoints/last/model.safetensors"));
}

TEST(PackCommandTest, PacksOnceAndThenReportsIt) {
  const Workplace work;
  write_folders(work);
  const Ended first = succeed(work, {"pack", "data", "packed"});
  EXPECT_EQ(last_line(first.err), "train: exit=0 reason=packed");
  EXPECT_TRUE(contains(first, "packed    packed: 16 images in 2 shards")) << first.out;
  const std::string before = pack_listing(work, "packed");
  const Ended again = succeed(work, {"pack", "data", "packed"});
  EXPECT_EQ(last_line(again.err), "train: exit=0 reason=already-packed");
  EXPECT_EQ(pack_listing(work, "packed"), before);
  EXPECT_EQ(last_line(succeed(work, {"pack", "--verify", "packed"}).err), "train: exit=0 reason=verified");
  EXPECT_EQ(last_line(succeed(work, {"pack", "packed", "--index"}).err), "train: exit=0 reason=indexed");
  expect_nothing_half_written(work);
}

TEST(PackCommandTest, ClassFoldersWithoutSplitsArePackedAsAWholeAndTheNextCommandTrains) {
  const Workplace work;
  write_folders(work);
  const Ended packed = succeed(work, {"pack", "data/train", "packed"});
  EXPECT_TRUE(contains(packed, "next      train --data-dir packed --val-fraction 0.1 ")) << packed.out;
  succeed(work, {"--data-dir", "packed", "--val-fraction", "0.5", "--model", "tiny_cnn", "--epochs", "1", "--threads",
                 "1", "--run-dir", "run", "--no-amp"});
}

TEST(PackCommandTest, ResizedImagesOfSixteenBitsKeepTheirContrast) {
  const Workplace work;
  for (const char* const name : {"cat/0", "cat/1", "dog/0", "dog/1"}) {
    std::string pixels;
    for (int i = 0; i < 40 * 40; ++i) {
      const int value = 900 + i % 401;
      pixels += {static_cast<char>(value >> 8), static_cast<char>(value & 0xFF)};
    }
    work.write("data/train/" + std::string(name) + ".pgm", "P5\n40 40\n65535\n" + pixels);
  }
  const Ended ended = succeed(work, {"pack", "data", "packed", "--max-side", "20"});
  EXPECT_TRUE(contains(ended, "range     numbers from 900 to 1300 become black to white")) << ended.out << ended.err;
}

TEST(PackCommandTest, DevicesInAConfigurationDoNotMatter) {
  const Workplace work;
  write_folders(work);
  work.write("gpus.yaml", "device:\n  device: cuda:63\n  devices: 4\nprecision:\n  amp: float16\n");
  const Ended ended = succeed(work, {"pack", "data", "packed", "-c", "gpus.yaml"});
  EXPECT_EQ(last_line(ended.err), "train: exit=0 reason=packed");
}

TEST(PackCommandTest, TrainingOnShardsGivesTheWeightsOfLooseFiles) {
  const Workplace work;
  write_folders(work);
  succeed(work, {"pack", "data", "packed", "--shard-size", "3", "--num-workers", "3"});
  succeed(work, train_words());
  for (const char* const workers : {"0", "2"}) {
    fs::remove_all(work / "other");
    Words words = train_words({"--data-dir", "packed", "--run-dir", "other"});
    words.insert(words.end(), {"--num-workers", workers});
    succeed(work, words);
    EXPECT_EQ(weights_of(work, "other"), weights_of(work, "run")) << workers;
  }
  EXPECT_FALSE(weights_of(work, "run").empty());
}

TEST(PackCommandTest, EvalReadsShards) {
  const Workplace work;
  write_folders(work);
  succeed(work, {"pack", "data", "packed"});
  succeed(work, train_words());
  const Ended loose = succeed(work, {"eval", "run", "--threads", "1"});
  const Ended packed = succeed(work, {"eval", "run", "--threads", "1", "--data-dir", "packed"});
  EXPECT_EQ(packed.out, loose.out);
}

TEST(PackCommandTest, AnInterruptedPackGoesOnWhereItStopped) {
  const Workplace work;
  write_folders(work);
  for (int i = 0; i < 150; ++i) work.write("data/train/cat/x" + std::to_string(i) + ".png", png_of(64, 64, 9));
  const Words words = {"pack", "data", "packed", "--shard-size", "5", "--max-side", "32", "--num-workers", "1"};
  for (const int signal_number : {SIGTERM, SIGKILL}) {
    Program program({words, work.path()});
    ASSERT_TRUE(program.wait_until([&] { return fs::exists(work / "packed/train-000001.tar.index"); }));
    program.send(signal_number);
    const Ended ended = program.wait();
    if (signal_number == SIGTERM && ended.exit_code != 0) {
      EXPECT_EQ(ended.exit_code, 75);
      EXPECT_EQ(last_line(ended.err), "train: exit=75 reason=signal:TERM");
      EXPECT_TRUE(contains(ended, "run the same command to continue"));
    }
  }
  EXPECT_TRUE(contains(succeed(work, words), "shards were finished before"));
  Words fresh = words;
  fresh[2] = "fresh";
  succeed(work, fresh);
  EXPECT_EQ(pack_listing(work, "packed"), pack_listing(work, "fresh"));
}

TEST(PackCommandTest, TarReadsTheShards) {
  const Workplace work;
  write_folders(work);
  succeed(work, {"pack", "data", "packed"});
  const std::string command = "cd " + work.path() +
                              " && mkdir out && tar xf packed/train-000000.tar -C out && rm -f out/*/*.cls"
                              " && diff -r out data/train";
  EXPECT_EQ(std::system(command.c_str()), 0);
}

class BadPack : public ::testing::TestWithParam<BadInput> {};

TEST_P(BadPack, IsRefused) {
  const Workplace work;
  expect_refused(GetParam(), work);
}

using Damage = std::function<void(const Workplace&)>;

std::function<Words(const Workplace&)> pack_words(
    const Words& words, const Damage& damage = [](const Workplace&) {}) {
  return [=](const Workplace& work) {
    write_folders(work);
    damage(work);
    return words;
  };
}

/// A finished pack with something done to it.
std::function<Words(const Workplace&)> packed(const Words& words, const Damage& damage) {
  return [=](const Workplace& work) {
    write_folders(work);
    run({"pack", "data", "packed"}, work.path());
    damage(work);
    return words;
  };
}

Words train_packed() { return train_words({"--data-dir", "packed"}); }

const std::vector<BadInput>& bad_packs() {
  static const std::vector<BadInput> all = {
      {"MissingDataset", words({"pack", "data", "out"}), kNoInput, {"the data folder data does not exist"}},
      {"NoWords", words({"pack"}), kUsage, {"missing DATASET: train pack DATASET OUT [options]"}},
      {"NoOutput", pack_words({"pack", "data"}), kUsage, {"missing OUT: train pack DATASET OUT"}},
      {"OutputInsideTheData",
       pack_words({"pack", "data", "data/packed"}),
       kUsage,
       {"the output data/packed lies inside the data set data", "pack into a folder elsewhere"}},
      {"OutputIsAFile",
       pack_words({"pack", "data", "out"}, [](const Workplace& work) { work.write("out", "x"); }),
       kCannotCreate,
       {"out"}},
      {"ShardSizeWithoutNumber",
       pack_words({"pack", "data", "out", "--shard-size", "MB"}),
       kUsage,
       {"--shard-size: \"MB\" is not accepted", "512MB"}},
      {"ShardSizeZero", pack_words({"pack", "data", "out", "--shard-size", "0"}), kUsage, {"--shard-size"}},
      {"ShardSizeUnit", pack_words({"pack", "data", "out", "--shard-size", "5TB"}), kUsage, {"--shard-size"}},
      {"Quality",
       pack_words({"pack", "data", "out", "--quality", "101"}),
       kUsage,
       {"--quality: \"101\" is not accepted; 1 to 100"}},
      {"Contradiction",
       pack_words({"pack", "data", "out", "--val-fraction", "0.1", "-c", "split.yaml"},
                  [](const Workplace& work) { work.write("split.yaml", "data:\n  val-split: val\n"); }),
       kConfig,
       {"val-fraction and val-split both set what to evaluate on: leave one of them out"}},
      {"MaxSide", pack_words({"pack", "data", "out", "--max-side", "-1"}), kUsage, {"--max-side"}},
      {"UnknownSplit", pack_words({"pack", "data", "out", "--split", "tset"}), kNoInput, {"data has no split 'tset'"}},
      {"BadImage",
       pack_words({"pack", "data", "out"}, [](const Workplace& work) { work.write("data/train/cat/9.jpg", "x"); }),
       kData,
       {"bad image data/train/cat/9.jpg", "--on-bad-image skip"}},
      {"VerifyAndOutput", pack_words({"pack", "data", "out", "--verify"}), kUsage, {"stand alone"}},
      {"VerifyNoShards", pack_words({"pack", "--verify", "data"}), kNoInput, {"data holds no shards"}},
      {"IndexNoShards", pack_words({"pack", "--index", "data"}), kNoInput, {"data holds no shards"}},
      {"OtherSettings",
       packed({"pack", "data", "packed", "--quality", "50"}, [](const Workplace&) {}),
       kConfig,
       {"packed holds a pack of other data or with other settings", "pack into another folder"}},
      {"VerifyDamaged",
       packed({"pack", "--verify", "packed"},
              [](const Workplace& work) {
                std::string shard = content_of_file(work / "packed/train-000000.tar");
                shard[520] = static_cast<char>(shard[520] ^ 1);
                work.write("packed/train-000000.tar", shard);
              }),
       kData,
       {"packed/train-000000.tar is damaged: its digest is not that of its index"}},
      {"TrainOnHalfAPack",
       packed(train_packed(),
              [](const Workplace& work) {
                std::string manifest = content_of_file(work / "packed/pack.json");
                for (size_t at; (at = manifest.find("true")) != std::string::npos;) manifest.replace(at, 4, "false");
                work.write("packed/pack.json", manifest);
              }),
       kData,
       {"packed: split 'train' is not packed to its end", "run the same train pack command again"}},
      {"TrainWithoutAShard",
       packed(train_packed(), [](const Workplace& work) { fs::remove(work / "packed/train-000000.tar"); }),
       kNoInput,
       {"packed holds no data set that is known here", "shards: train-000000.tar"}},
      {"TrainOnACutShard",
       packed(train_packed(), [](const Workplace& work) { fs::resize_file(work / "packed/train-000000.tar", 2048); }),
       kData,
       {"packed/train-000000.tar has 2048 bytes, its index was made for"}},
      {"TrainOnACutShardWithoutIndex",
       packed(train_packed(),
              [](const Workplace& work) {
                fs::resize_file(work / "packed/train-000000.tar", 2048);
                fs::remove(work / "packed/train-000000.tar.index");
              }),
       kData,
       {"packed/train-000000.tar: byte 2048: cut short: there is no end-of-archive block"}},
      {"TrainOnADamagedIndex",
       packed(train_packed(), [](const Workplace& work) { append(work / "packed/train-000000.tar.index", "x"); }),
       kData,
       {"packed/train-000000.tar.index: damaged", "train pack --index FOLDER"}},
      {"TrainOnADamagedManifest",
       packed(train_packed(), [](const Workplace& work) { work.write("packed/pack.json", "{"); }),
       kData,
       {"packed/pack.json"}},
      {"TrainWithoutClasses",
       packed(train_packed(), [](const Workplace& work) { work.write("packed/classes.txt", "cat\n"); }),
       kData,
       {"label 1 is out of range: there are 1 classes"}},
  };
  return all;
}

INSTANTIATE_TEST_SUITE_P(Pack, BadPack, ::testing::ValuesIn(bad_packs()), name_of);

}  // namespace
}  // namespace stoker::cli
