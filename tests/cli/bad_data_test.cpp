// SPDX-License-Identifier: Apache-2.0
// Data sets that cannot be trained on: each row makes a small one and damages it in one way.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "bad_input.h"
#include "exit_codes.h"

namespace stoker::cli {
namespace {

namespace fs = std::filesystem;

class BadData : public ::testing::TestWithParam<BadInput> {};

TEST_P(BadData, IsRefused) {
  const Workplace work;
  expect_refused(GetParam(), work);
  // Images are decoded while training: at most the header of the table stands there by then.
  EXPECT_LE(lines_of(content_of_file(work / "run/summary.csv")).size(), 1u);
  EXPECT_FALSE(fs::exists(work / "run/checkpoints/last"));
}

using Damage = std::function<void(const Workplace&)>;

/// An IDX data set with something done to it.
std::function<Words(const Workplace&)> idx(const Damage& damage, const Words& more = {}) {
  return [=](const Workplace& work) {
    write_idx(work);
    damage(work);
    return train_words(more);
  };
}

std::function<Words(const Workplace&)> idx_file(const std::string& name, const std::string& content) {
  return idx([=](const Workplace& work) { work.write("data/" + name, content); });
}

const std::vector<BadInput>& bad_places() {
  static const std::vector<BadInput> all = {
      {"MissingFolder",
       words(train_words()),
       kNoInput,
       {"the data folder data does not exist", "expected below --data-dir one of", "train-images-idx3-ubyte"}},
      {"FileInsteadOfFolder",
       [](const Workplace& work) {
         work.write("data", "x");
         return train_words();
       },
       kNoInput,
       {"the data folder data is not a folder"}},
      {"EmptyFolder",
       [](const Workplace& work) {
         fs::create_directory(work / "data");
         return train_words();
       },
       kNoInput,
       {"data holds no data set that is known here", "expected below --data-dir one of"}},
      {"UnknownTrainSplit",
       idx([](const Workplace&) {}, {"--dataset", "idx", "--train-split", "trian"}),
       kNoInput,
       {"data has no split 'trian'"}},
      {"UnknownValSplit",
       idx([](const Workplace&) {}, {"--val-split", "valid"}),
       kNoInput,
       {"data has no split 'valid'"}},
      {"NoValSplit",
       idx([](const Workplace& work) { fs::remove(work / "data/t10k-images-idx3-ubyte"); }),
       kNoInput,
       {"data has no validation split: none of val, validation", "--val-fraction"}},
  };
  return all;
}

const std::vector<BadInput>& bad_idx() {
  static const std::vector<BadInput> all = {
      {"WrongMagic",
       idx_file("train-images-idx3-ubyte", idx_images(64, 0x1234)),
       kData,
       {"data/train-images-idx3-ubyte: magic 0x00001234 instead of 0x00000803 (images)", "hint: get the file again"}},
      {"LabelsForImages",
       idx_file("train-images-idx3-ubyte", idx_labels(64)),
       kData,
       {"data/train-images-idx3-ubyte: magic 0x00000801 instead of 0x00000803"}},
      {"CutShort",
       idx_file("train-images-idx3-ubyte", idx_images(64).substr(0, 1000)),
       kData,
       {"data/train-images-idx3-ubyte: cut short: the header promises 4096 bytes of content, there are 984"}},
      {"CutShortInTheHeader",
       idx_file("train-labels-idx1-ubyte", idx_labels(64).substr(0, 5)),
       kData,
       {"data/train-labels-idx1-ubyte: cut short inside the IDX header"}},
      {"EmptyFile", idx_file("train-labels-idx1-ubyte", ""), kData, {"data/train-labels-idx1-ubyte: cut short"}},
      {"MoreThanPromised",
       idx_file("train-labels-idx1-ubyte", idx_labels(64) + "x"),
       kData,
       {"data/train-labels-idx1-ubyte: more content than the 64 bytes"}},
      {"FewerLabelsThanImages",
       idx_file("train-labels-idx1-ubyte", idx_labels(63)),
       kData,
       {"data/train-labels-idx1-ubyte: 63 labels for the 64 images of data/train-images-idx3-ubyte"}},
      {"LabelOutOfRange",
       idx_file("train-labels-idx1-ubyte", idx_labels(64, 0x801, 10)),
       kData,
       {"data/train-labels-idx1-ubyte: label 10 of image 0 is out of range: there are 10 classes, 0 to 9",
        "--num-classes"}},
      {"LabelOutOfRangeInValidation",
       idx_file("t10k-labels-idx1-ubyte", idx_labels(20, 0x801, 255)),
       kData,
       {"data/t10k-labels-idx1-ubyte: label 255 of image 0 is out of range"}},
      {"NoImages", idx_file("train-images-idx3-ubyte", idx_images(0)), kData, {"holds 0 images"}},
      {"HugeCountInTheHeader",
       idx_file("train-images-idx3-ubyte", std::string("\0\0\x08\x03\xFF\xFF\xFF\xFF\0\0\xFF\xFF\0\0\xFF\xFF", 16)),
       kData,
       {"data/train-images-idx3-ubyte: the header promises"}},
      {"NoLabels",
       idx([](const Workplace& work) { fs::remove(work / "data/train-labels-idx1-ubyte"); }),
       kNoInput,
       {"data/train-labels-idx1-ubyte[.gz] does not exist"}},
      {"PipeForLabels",
       idx([](const Workplace& work) {
         fs::remove(work / "data/train-labels-idx1-ubyte");
         ::mkfifo((work / "data/train-labels-idx1-ubyte").c_str(), 0600);
       }),
       kNoInput,
       {"cannot read data/train-labels-idx1-ubyte: it is not a regular file"}},
      {"GzipCutShort",
       idx([](const Workplace& work) {
         fs::remove(work / "data/train-labels-idx1-ubyte");
         const std::string whole = gzipped(idx_labels(64));
         work.write("data/train-labels-idx1-ubyte.gz", whole.substr(0, whole.size() / 2));
       }),
       kData,
       {"data/train-labels-idx1-ubyte.gz: cut short"}},
      {"GzipDamaged",
       idx([](const Workplace& work) {
         fs::remove(work / "data/train-images-idx3-ubyte");
         std::string whole = gzipped(idx_images(64));
         for (size_t i = whole.size() / 2; i < whole.size(); ++i) whole[i] = static_cast<char>(~whole[i]);
         work.write("data/train-images-idx3-ubyte.gz", whole);
       }),
       kData,
       {"data/train-images-idx3-ubyte.gz: damaged gzip stream"}},
      {"FewerImagesThanABatchWithDropLast",
       idx([](const Workplace&) {}, {"--batch-size", "65", "--drop-last"}),
       kData,
       {"64 images", "65", "drop-last"}},
      {"LastBatchOfOneImage",
       [](const Workplace& work) {
         write_idx(work, 65);
         return train_words({"--no-drop-last", "--img-size", "8"});
       },
       kConfig,
       {"65 images in batches of 16 leave a last batch of one, which batch norm cannot train on",
        "hint: add --drop-last or change --batch-size"}},
      {"MoreClassesThanOutputs",
       idx([](const Workplace&) {}, {"--num-classes", "3"}),
       kData,
       {"label 3 of image 3 is out of range: there are 3 classes"}},
      {"MeanForOtherChannels",
       idx([](const Workplace&) {}, {"--mean", "0.5,0.5,0.5"}),
       kConfig,
       {"mean has 3 values, but in-chans is 1"}},
      {"BatchBeyondAnyMemory",
       idx([](const Workplace&) {}, {"--batch-size", "1048576", "--img-size", "8192"}),
       kOutOfMemory,
       {"the run would take ", " are free", "train plan shows each part"}},
      {"LearningRateThatDiverges",
       idx([](const Workplace&) {}, {"--lr", "1e30"}),
       kDiverged,
       {"training diverged: the loss is ", "at update ", "train inspect blame run ", "lower --lr",
        "no checkpoint has been written yet"}},
      {"UnknownModel", idx([](const Workplace&) {}, {"--model", "resnet19"}), kConfig, {"resnet19", "resnet18"}},
  };
  return all;
}

TEST(BadDataTest, ALastBatchOfOneIsTrainedOnWhereTheNetworkCanAndLeftOutWhereItWouldBeAnUpdateOfItsOwn) {
  const auto output_of = [](const Words& more) {
    const Workplace work;
    write_idx(work, 65);
    const Ended ended = run(train_words(more), work.path());
    return ended.out + ended.err;
  };
  const std::string kept = output_of({"--no-drop-last", "--img-size", "28"});  // no map is a single value
  EXPECT_NE(kept.find("train: exit=0 reason=epochs-done update=5 "), std::string::npos) << kept;
  const std::string left_out = output_of({"--img-size", "28"});
  EXPECT_NE(left_out.find("train: exit=0 reason=epochs-done update=4 "), std::string::npos) << left_out;
}

TEST(BadDataTest, AModelBeyondMemoryIsRefusedAndNotKilled) {
  constexpr double kClassifierGigabytes = 65.5;  // 1024 x 4 channels on a 2 x 2 grid, a million classes, float32
  const double machine =
      1e-9 * static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGE_SIZE));
  if (machine > 0.9 * kClassifierGigabytes) GTEST_SKIP() << "this machine could hold it";
  const Workplace work;
  expect_refused({"ModelBeyondMemory",
                  idx([](const Workplace&) {}, {"--width", "1024", "--num-classes", "1000000"}),
                  kOutOfMemory,
                  {"the weights of small_cnn do not fit into the memory that is free", "choose a smaller --model"}},
                 work);
}

INSTANTIATE_TEST_SUITE_P(Place, BadData, ::testing::ValuesIn(bad_places()), name_of);
INSTANTIATE_TEST_SUITE_P(Idx, BadData, ::testing::ValuesIn(bad_idx()), name_of);

}  // namespace
}  // namespace stoker::cli
