// SPDX-License-Identifier: Apache-2.0
// Data sets in HDF5 files, as a run opens them.
#include "data/dataset/hdf5_source.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>

#include "core/hash.h"
#include "core/log.h"
#include "data/container/hdf5_file.h"
#include "data/loader/loader.h"
#include "data/open_datasets.h"
#include "made_hdf5.h"

namespace stoker::data {
namespace {

constexpr int64_t kSamples = 12, kHeight = 5, kWidth = 7;

Bytes made_samples(int bytes_each) { return made_numbers(kSamples * kHeight * kWidth, bytes_each); }

std::vector<int64_t> alternating_labels(int64_t count = kSamples, int64_t classes = 2) {
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < count; ++i) labels.push_back(i * 7 % classes);
  return labels;
}

/// Bytes of whole numbers as float64.
Bytes doubles_of(const std::vector<double>& values) {
  Bytes bytes(values.size() * sizeof(double));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

class Hdf5SourceTest : public ::testing::Test {
 protected:
  Hdf5SourceTest() {
    options_.data_dir = folder_.path();
    options_.task = config::TaskKind::binary;
  }

  /// One split in a file of its own, with usual names.
  void write_split(const std::string& split, const Hdf5Recipe& recipe = {}, const std::string& element = "float32",
                   const std::vector<int64_t>& labels = alternating_labels()) {
    MadeHdf5 file(folder_ / (split + ".h5"));
    file.add("x", element, {kSamples, kHeight, kWidth},
             made_samples(element == "uint8"     ? 1
                          : element == "float16" ? 2
                                                 : 4),
             recipe);
    file.add_labels("y", labels);
  }
  core::Error open_error() {
    return error_of([&] { open_datasets(options_); });
  }

  TempFolder folder_;
  config::DataOptions options_;
};

Bytes sample_of(const Source& source, int64_t index) {
  std::vector<uint8_t> buffer;
  SampleContent content;
  EXPECT_EQ(source.read(index, buffer, content), "");
  return Bytes(content.bytes, content.bytes + content.size);
}

TEST_F(Hdf5SourceTest, AFilePerSplitIsRecognisedAndReadsBackExactly) {
  write_split("train");
  write_split("val");
  const Datasets datasets = open_datasets(options_);
  const Source& train = *datasets.train;
  ASSERT_EQ(train.size(), kSamples);
  EXPECT_EQ(train.fixed_shape(), (SampleShape{0, kHeight, kWidth, 1, Element::float32}));
  EXPECT_EQ(train.class_names(), std::vector<std::string>({"0", "1"}));
  const Bytes all = made_samples(4);
  Bytes read;
  for (int64_t i = 0; i < kSamples; ++i) {
    EXPECT_EQ(train.label(i), i * 7 % 2);
    const Bytes sample = sample_of(train, i);
    read.insert(read.end(), sample.begin(), sample.end());
  }
  EXPECT_EQ(read, all);
  EXPECT_EQ(train.name(3), folder_ / "train.h5#3");
  EXPECT_EQ(train.relative_name(3), "#3");
  EXPECT_EQ(datasets.notes[0], "train: " + folder_ / "train.h5: x float32 of 5 x 7, in one piece; labels y int64");
}

TEST_F(Hdf5SourceTest, AGroupPerSplitInOneFileIsRecognised) {
  {
    MadeHdf5 file(folder_ / "all.hdf5");
    for (const std::string split : {"train", "val"}) {
      file.add(split + "/spectrograms", "uint8", {kSamples, kHeight, kWidth}, made_samples(1));
      file.add_labels(split + "/labels", alternating_labels());
    }
  }
  const Datasets datasets = open_datasets(options_);
  EXPECT_EQ(datasets.train->name(0), folder_ / "all.hdf5:train#0");
  EXPECT_EQ(datasets.val->name(0), folder_ / "all.hdf5:val#0");
  options_.data_dir = folder_ / "all.hdf5";
  options_.dataset = config::DatasetType::hdf5;
  EXPECT_EQ(open_datasets(options_).train->fingerprint(), datasets.train->fingerprint())
      << "the file itself may be named";
}

TEST_F(Hdf5SourceTest, WithoutGroupsAPartOfTheFileIsHeldOut) {
  {
    MadeHdf5 file(folder_ / "all.h5");
    file.add("x", "uint8", {kSamples, kHeight, kWidth}, made_samples(1));
    file.add_labels("y", alternating_labels());
  }
  options_.val_fraction = 0.3;
  const Datasets datasets = open_datasets(options_);
  EXPECT_GT(datasets.val->size(), 0);
  EXPECT_EQ(datasets.train->size() + datasets.val->size(), kSamples);
  EXPECT_EQ(datasets.train->fixed_shape().height, kHeight);
}

/// Part `part` of `parts` of the samples and labels.
void write_part(const std::string& path, int part, int parts) {
  MadeHdf5 file(path);
  const Bytes all = made_samples(1);
  const std::vector<int64_t> labels = alternating_labels();
  const int64_t begin = kSamples * part / parts, end = kSamples * (part + 1) / parts;
  constexpr int64_t kBytes = kHeight * kWidth;
  file.add("x", "uint8", {end - begin, kHeight, kWidth},
           Bytes(all.begin() + begin * kBytes, all.begin() + end * kBytes));
  file.add_labels("y", {labels.begin() + begin, labels.begin() + end});
}

TEST_F(Hdf5SourceTest, SeveralFilesOfASplitAreOneDataSet) {
  write_part(folder_ / "one.h5", 0, 1);
  options_.data_dir = folder_ / "one.h5";
  options_.val_fraction = 0.3;
  const std::shared_ptr<const Source> one = open_datasets(options_).train;
  // By their names, in folders, and all of a folder.
  for (const std::string folder : {"named", "folders/train", "folders/val", "whole"}) folder_.make_folder(folder);
  write_part(folder_ / "named/val.h5", 0, 1);
  for (int part = 0; part < 3; ++part) {
    const std::string number = std::to_string(part);
    write_part(folder_ / ("named/train-" + number + ".h5"), part, 3);
    for (const std::string folder : {"folders/train", "folders/val", "whole"}) {
      write_part(folder_ / (folder + "/part" + number + ".h5"), part, 3);
    }
  }
  options_.val_fraction = 0;
  for (const std::string layout : {"named", "folders"}) {
    options_.data_dir = folder_ / layout;
    const Datasets datasets = open_datasets(options_);
    const Source& train = *datasets.train;
    ASSERT_EQ(train.size(), kSamples);
    EXPECT_EQ(datasets.val->size(), kSamples);
    Bytes read;
    for (int64_t i = 0; i < kSamples; ++i) {
      EXPECT_EQ(train.label(i), i * 7 % 2);
      const Bytes sample = sample_of(train, i);
      read.insert(read.end(), sample.begin(), sample.end());
    }
    EXPECT_EQ(read, made_samples(1));
    EXPECT_EQ(train.fingerprint(), datasets.val->fingerprint()) << "of the same samples in other files";
  }
  EXPECT_EQ(open_datasets(options_).train->name(kSamples - 1).rfind(folder_ / "folders/train/part2.h5#", 0), 0u);
  options_.data_dir = folder_ / "whole";
  EXPECT_EQ(open_error().kind(), core::ErrorKind::no_input) << "no name marks the files for validation";
  options_.val_fraction = 0.3;
  EXPECT_EQ(open_datasets(options_).train->fingerprint(), one->fingerprint());
}

TEST_F(Hdf5SourceTest, FilesOfASplitThatDifferAreNamed) {
  write_part(folder_ / "a.h5", 0, 1);
  {
    MadeHdf5 file(folder_ / "b.h5");
    file.add("x", "float32", {kSamples, kHeight, kWidth}, made_samples(4));
    file.add_labels("y", alternating_labels());
  }
  options_.val_fraction = 0.3;
  EXPECT_EQ(std::string(open_error().what()),
            (folder_ / "a.h5") + " and " + (folder_ / "b.h5") + " hold samples of 5 x 7 uint8 and of 5 x 7 float32");
}

TEST_F(Hdf5SourceTest, DataSetsAreFoundByTheNamesThatAreGiven) {
  {
    MadeHdf5 file(folder_ / "all.h5");
    for (const std::string split : {"train", "val"}) {
      file.add(split + "/mel", "uint8", {kSamples, kHeight, kWidth}, made_samples(1));
      file.add_labels(split + "/species", alternating_labels());
    }
  }
  options_.hdf5_input = "train/mel";
  options_.hdf5_label = "species";
  EXPECT_EQ(open_datasets(options_).val->size(), kSamples);
  options_.hdf5_label = "";
  const core::Error error = open_error();
  EXPECT_EQ(error.kind(), core::ErrorKind::data);
  EXPECT_EQ(error.what(),
            folder_ / "all.h5: no data set in group train is called y, Y, labels, label, targets and target");
  EXPECT_NE(std::string(error.hint())
                .find("name it with --hdf5 ,LABEL; the file holds\n  train/mel  uint8 [12, 5, 7]\n  "
                      "train/species  int64 [12]"),
            std::string::npos)
      << error.hint();
  options_.hdf5_label = "train/genus";
  EXPECT_EQ(open_error().what(), folder_ / "all.h5: there is no data set train/genus");
}

TEST_F(Hdf5SourceTest, PlanesBecomePixelsAndBothOrdersAreDistinguished) {
  for (const bool planes : {true, false}) {
    for (const auto& [element, width] : {std::pair<const char*, size_t>{"uint8", 1}, {"float16", 2}, {"float32", 4}}) {
      const Bytes numbers = made_numbers(kSamples * 3 * kHeight * kWidth, static_cast<int>(width));
      for (const std::string split : {"train", "val"}) {
        MadeHdf5 file(folder_ / (split + ".h5"));
        const std::vector<int64_t> dims = planes ? std::vector<int64_t>{kSamples, 3, kHeight, kWidth}
                                                 : std::vector<int64_t>{kSamples, kHeight, kWidth, 3};
        file.add("x", element, dims, numbers);
        file.add_labels("y", alternating_labels());
      }
      const Datasets datasets = open_datasets(options_);
      EXPECT_EQ(datasets.train->fixed_shape().channels, 3);
      EXPECT_EQ(datasets.notes[0], planes ? "train: x is taken as [N, C, H, W]" : "train: x is taken as [N, H, W, C]");
      const Bytes sample = sample_of(*datasets.train, 2);
      const auto at = [&](size_t y, size_t x, size_t c) {
        const size_t number =
            planes ? ((2 * 3 + c) * kHeight + y) * kWidth + x : ((2 * kHeight + y) * kWidth + x) * 3 + c;
        return Bytes(numbers.begin() + static_cast<std::ptrdiff_t>(number * width),
                     numbers.begin() + static_cast<std::ptrdiff_t>((number + 1) * width));
      };
      for (size_t y = 0; y < kHeight; ++y) {
        for (size_t x = 0; x < kWidth; ++x) {
          for (size_t c = 0; c < 3; ++c) {
            const auto from = static_cast<std::ptrdiff_t>(((y * kWidth + x) * 3 + c) * width);
            ASSERT_EQ(Bytes(sample.begin() + from, sample.begin() + from + static_cast<std::ptrdiff_t>(width)),
                      at(y, x, c));
          }
        }
      }
    }
  }
}

TEST_F(Hdf5SourceTest, TheFingerprintIsThatOfTheNumbersAndNotOfTheirStorage) {
  write_split("train");
  write_split("val");
  const std::string plain = open_datasets(options_).train->fingerprint();
  Hdf5Recipe deflated;
  deflated.chunk = {5, kHeight, kWidth};
  deflated.deflate = true;
  write_split("train", deflated);
  EXPECT_EQ(open_datasets(options_).train->fingerprint(), plain);
  options_.stage_dir = folder_.make_folder("fast");
  core::set_console_level(core::LogLevel::error);
  EXPECT_EQ(open_datasets(options_).train->fingerprint(), plain);
  core::set_console_level(core::LogLevel::info);
  auto labels = alternating_labels();
  std::swap(labels[0], labels[1]);
  write_split("train", {}, "float32", labels);
  EXPECT_NE(open_datasets(options_).train->fingerprint(), plain);
}

TEST_F(Hdf5SourceTest, StagedCopiesGoWithTheSources) {
  write_split("train");
  write_split("val");
  options_.stage_dir = folder_.make_folder("fast");
  core::set_console_level(core::LogLevel::error);
  {
    const Datasets datasets = open_datasets(options_);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(options_.stage_dir), {}), 1);
    EXPECT_EQ(datasets.train->name(0), folder_ / "train.h5#0") << "the file that was given";
    EXPECT_EQ(sample_of(*datasets.train, 1).size(), 4u * kHeight * kWidth);
  }
  core::set_console_level(core::LogLevel::info);
  EXPECT_TRUE(std::filesystem::is_empty(options_.stage_dir));
}

TEST_F(Hdf5SourceTest, TheLoaderGivesTheSameBitsForAnyNumberOfWorkersAndAnyStorage) {
  constexpr int64_t kMany = 300;
  const Bytes numbers = made_numbers(kMany * 16 * 20, 2);
  std::set<std::string> digests;
  for (const bool deflate : {false, true}) {
    for (const std::vector<int64_t>& chunk : {std::vector<int64_t>{}, {1, 16, 20}, {16, 16, 20}, {50, 7, 9}}) {
      if (chunk.empty() && deflate) continue;
      for (const std::string split : {"train", "val"}) {
        MadeHdf5 file(folder_ / (split + ".h5"));
        Hdf5Recipe recipe;
        recipe.chunk = chunk;
        recipe.shuffle = recipe.deflate = deflate;
        file.add("x", "float16", {kMany, 16, 20}, numbers, recipe);
        file.add_labels("y", alternating_labels(kMany));
      }
      const auto source = open_datasets(options_).train;
      config::ResolvedAugmentOptions augment;
      augment.freq_masks = augment.time_masks = 2;
      config::ResolvedDataOptions data;
      data.mean = {0.5};
      const TransformPlan plan = make_transform_plan(data, augment, /*training=*/true, source->fixed_shape());
      for (const int64_t workers : {0, 2, 16}) {
        LoaderSettings settings;
        settings.batch_size = 32;
        settings.num_workers = workers;
        settings.shuffle = true;
        settings.seed = 3;
        Loader loader(source, plan, settings);
        core::Hasher hasher;
        for (const int64_t epoch : {0, 1}) {
          loader.begin_epoch(epoch);
          for (HostBatch batch; loader.next(batch);) {
            EXPECT_EQ(batch.images.scalar_type(), torch::kFloat16);
            hasher.add(batch.images.data_ptr(), static_cast<uint64_t>(batch.images.numel()) * 2);
            hasher.add(batch.labels.data_ptr<int64_t>(), static_cast<uint64_t>(batch.labels.numel()) * 8);
            loader.release(batch);
          }
        }
        digests.insert(hasher.hex());
      }
    }
  }
  EXPECT_EQ(digests.size(), 1u);
}

TEST_F(Hdf5SourceTest, MasksBlankTrainingSamplesAndNoOthers) {
  write_split("train");
  write_split("val");
  const auto source = open_datasets(options_).train;
  config::ResolvedAugmentOptions augment;
  augment.freq_masks = 2;
  augment.freq_mask_param = 5;
  config::ResolvedDataOptions data;
  data.mean = {77.25};
  const auto blank_rows = [&](bool training) {
    LoaderSettings settings;
    settings.batch_size = kSamples;
    Loader loader(source, make_transform_plan(data, augment, training, source->fixed_shape()), settings);
    loader.begin_epoch(0);
    HostBatch batch;
    loader.next(batch);
    return (batch.images == 77.25).all(2).sum().item<int64_t>();  // rows of [N, H, W, 1]
  };
  EXPECT_GT(blank_rows(true), kSamples);
  EXPECT_EQ(blank_rows(false), 0);
}

TEST_F(Hdf5SourceTest, TypesThatAreNotReadAreNamed) {
  for (const auto& [type, width] : {std::pair<std::string, int>{"int16", 2},
                                    {"float64", 8},
                                    {"int8", 1},
                                    {"big-endian float32", 4},
                                    {"string", 1}}) {
    {
      MadeHdf5 file(folder_ / "train.h5");
      file.add("x", type, {kSamples, kHeight, kWidth}, made_samples(width));
      file.add_labels("y", alternating_labels());
    }
    const core::Error error = open_error();
    EXPECT_EQ(error.kind(), core::ErrorKind::data);
    EXPECT_EQ(error.what(), folder_ / "train.h5: data set x: its numbers are " + type +
                                "; uint8, float16 and float32 (little-endian) are read");
    EXPECT_NE(error.hint().find(".astype('<f4')"), std::string::npos) << error.hint();
  }
}

TEST_F(Hdf5SourceTest, StoragesThatAreNotReadAreErrorsWithAHint) {
  Hdf5Recipe checked, compact, external, unwritten, half, fast, large;
  checked.chunk = half.chunk = fast.chunk = {4, kHeight, kWidth};
  fast.lzf = true;
  checked.fletcher32 = compact.compact = true;
  external.external_file = folder_ / "outside.bin";
  unwritten.leave_unwritten = true;
  half.written = 8;
  large.may_grow = large.leave_unwritten = large.deflate = true;
  large.chunk = {1, 1 << 14, 1 << 15};
  const std::tuple<Hdf5Recipe, const char*, const char*> cases[] = {
      {checked, "its chunks went through the filter fletcher32; deflate and shuffle are read",
       "h5repack -f x:SHUF -f x:GZIP=4"},
      {fast, "its chunks went through the filter lzf; deflate and shuffle are read", "compression='gzip'"},
      {compact, "it is stored in a way that is not read here (compact)", "h5repack -l x:CONTI"},
      {external, "its numbers lie in other files (external storage)", "h5repack"},
      {unwritten, "it was never written", ""},
      {half, "samples 8 to 11 were never written", "make the data set shorter"},
      {large, "a chunk of it takes more than 1024 MiB of memory", "h5repack -l x:CHUNK="}};
  for (const auto& [recipe, cause, hint] : cases) {
    write_split("train", recipe);
    const core::Error error = open_error();
    EXPECT_EQ(error.kind(), core::ErrorKind::data);
    EXPECT_EQ(error.what(), folder_ / "train.h5: data set x: " + cause);
    EXPECT_NE(error.hint().find(hint), std::string::npos) << error.hint();
  }
  {
    MadeHdf5 file(folder_ / "train.h5");
    file.add("real", "float32", {kSamples, kHeight, kWidth}, made_samples(4));
    file.add_virtual("x", "real", {kSamples, kHeight, kWidth});
    file.add_labels("y", alternating_labels());
  }
  EXPECT_EQ(open_error().what(),
            folder_ / "train.h5: data set x: it is a virtual data set, whose numbers lie in other ones");
  {
    MadeHdf5 file(folder_ / "train.h5", /*latest=*/false, /*user_block=*/512);
    file.add("x", "float32", {kSamples, kHeight, kWidth}, made_samples(4));
    file.add_labels("y", alternating_labels());
  }
  EXPECT_EQ(open_error().what(), folder_ / "train.h5: data set x: the file begins with 512 bytes of another program");
}

TEST_F(Hdf5SourceTest, ShapesThatAreNoImagesAreNamed) {
  for (const auto& [dims, text] :
       {std::pair<std::vector<int64_t>, const char*>{{12},
                                                     " has 1 dimension [12]; samples have 2 or 3 behind their number"},
        {{12, 35}, ": it has 2 dimensions, [12, 35]"},
        {{12, 5, 7, 5}, ": it has 4 dimensions, [12, 5, 7, 5]"},
        {{12, 2, 3, 4, 5}, " has 5 dimensions [12, 2, 3, 4, 5]; samples have 2 or 3 behind their number"}}) {
    int64_t count = 1;
    for (const int64_t side : dims) count *= side;
    {
      MadeHdf5 file(folder_ / "train.h5");
      file.add("x", "float32", dims, made_numbers(count, 4));
      file.add_labels("y", alternating_labels());
    }
    const core::Error error = open_error();
    EXPECT_EQ(error.what(), folder_ / "train.h5: data set x" + text);
    EXPECT_NE(error.hint().find("[N, H, W], [N, C, H, W] or [N, H, W, C]"), std::string::npos) << error.hint();
  }
}

TEST_F(Hdf5SourceTest, FilesThatAreNoneOrCutShortAreErrors) {
  folder_.write("train.h5", std::string("certainly no HDF5"));
  EXPECT_EQ(open_error().kind(), core::ErrorKind::data);
  EXPECT_NE(std::string(open_error().what()).find("train.h5 cannot be read as HDF5"), std::string::npos)
      << open_error().what();
  write_split("train");
  const auto whole = std::filesystem::file_size(folder_ / "train.h5");
  for (uint64_t size = 0; size < whole; size += 97) {
    write_split("train");
    std::filesystem::resize_file(folder_ / "train.h5", size);
    EXPECT_EQ(open_error().kind(), core::ErrorKind::data) << size << " of " << whole << " bytes";
  }
}

TEST_F(Hdf5SourceTest, LabelsMustBeClassesOfTheTrainingSplit) {
  write_split("train", {}, "float32", alternating_labels(kSamples, 3));
  write_split("val", {}, "float32", alternating_labels(kSamples, 4));
  options_.task = config::TaskKind::multiclass;
  EXPECT_EQ(open_error().what(),
            folder_ / "val.h5: data set y: label 3 of sample 1 is out of range: there are 3 classes, 0 to 2");
  options_.num_classes = 4;
  EXPECT_EQ(open_datasets(options_).train->num_classes(), 4);
  write_split("train", {}, "float32", {0, 1, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_NE(std::string(open_error().what()).find("label -1 of sample 2 is out of range"), std::string::npos);
  write_split("train", {}, "float32", alternating_labels(5));
  EXPECT_EQ(open_error().what(), folder_ / "train.h5: data set y: 5 labels for 12 samples");
}

TEST_F(Hdf5SourceTest, LabelsMayBeBoolsColumnsOfOneOrNumbersToLearn) {
  const auto write = [&](const std::string& type, const std::vector<int64_t>& dims, const Bytes& labels) {
    for (const std::string split : {"train", "val"}) {
      MadeHdf5 file(folder_ / (split + ".h5"));
      file.add("x", "float32", {kSamples, kHeight, kWidth}, made_samples(4));
      file.add("y", type, dims, labels);
    }
  };
  write("bool", {kSamples, 1, 1}, {0, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 1});
  EXPECT_EQ(open_datasets(options_).train->label(1), 1);
  EXPECT_EQ(open_datasets(options_).train->label(3), 0);

  std::vector<double> numbers;
  for (int i = 0; i < 24; ++i) numbers.push_back(0.5 * i - 3);
  write("float64", {kSamples, 2}, doubles_of(numbers));
  EXPECT_EQ(open_error().what(),
            folder_ / "train.h5: data set y: task binary learns classes, but the labels are float64 with 2 columns");
  options_.task = config::TaskKind::regression;
  const auto source = open_datasets(options_).train;
  EXPECT_EQ(source->target_names(), std::vector<std::string>({"y0", "y1"}));
  float targets[2];
  source->targets(3, targets);
  EXPECT_EQ(targets[0], 0);
  EXPECT_EQ(targets[1], 0.5);
  numbers[5] = std::nan("");
  write("float64", {kSamples, 2}, doubles_of(numbers));
  EXPECT_EQ(open_error().what(), folder_ / "train.h5: data set y: nan of sample 2 is not a finite number");
}

TEST_F(Hdf5SourceTest, AFolderWithOtherFilesShowsWhatIsExpectedAndWhatIsThere) {
  {
    MadeHdf5 file(folder_ / "a.h5");
    file.add("recordings/x", "uint8", {kSamples, kHeight, kWidth}, made_samples(1));
  }
  options_.dataset = config::DatasetType::hdf5;
  const core::Error error = open_error();
  EXPECT_EQ(error.kind(), core::ErrorKind::no_input);
  const std::string message = std::string(error.what()) + "\n" + error.hint();
  EXPECT_NE(message.find("train.h5 and val.h5"), std::string::npos) << message;
  EXPECT_NE(message.find("a.h5: recordings/x  uint8 [12, 5, 7]"), std::string::npos) << message;
}

}  // namespace
}  // namespace stoker::data
