// SPDX-License-Identifier: Apache-2.0
// Every file in configs/ gets as far as the plan on data in its layout, and its error on other data names what it
// needs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "data/made_sound.h"
#include "spectrograms.h"
#include "tiny_data.h"

namespace stoker::cli {
namespace {

namespace fs = std::filesystem;

std::string little(uint32_t value) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(value >> shift & 0xFF);
  return bytes;
}

/// A MAT-file of level 5 whose Pose_Para is seven zeros.
std::string mat_of_a_level_head() {
  constexpr uint32_t kInt8 = 1, kInt32 = 5, kUint32 = 6, kDouble = 9, kMatrix = 14, kDoubleClass = 6;
  const std::string array = little(kUint32) + little(8) + little(kDoubleClass) + little(0) +  // flags
                            little(kInt32) + little(8) + little(1) + little(7) +              // dimensions
                            little(kInt8) + little(9) + "Pose_Para" + std::string(7, '\0') +  // name
                            little(kDouble) + little(56) + std::string(56, '\0');
  return std::string(124, ' ') + std::string("\0\1IM", 4) + little(kMatrix) +
         little(static_cast<uint32_t>(array.size())) + array;
}

void write_class_folders(const Workplace& work) {
  for (const std::string split : {"train", "val"}) {
    for (int i = 0; i < 8; ++i) {
      const std::string name = "data/" + split + "/n0" + std::to_string(i % 2) + "/" + std::to_string(i) + ".JPEG";
      work.write(name, jpeg_of(40, 32, static_cast<uint8_t>(30 * i)));
    }
  }
}

void write_300wlp(const Workplace& work) {
  for (const std::string folder : {"data/300W_LP/AFW/", "data/300W_LP/IBUG/", "data/AFLW2000/"}) {
    for (int i = 0; i < 3; ++i) {
      const std::string stem = folder + "image" + std::to_string(i);
      work.write(stem + ".jpg", jpeg_of(40, 32, static_cast<uint8_t>(30 * i)));
      work.write(stem + ".mat", mat_of_a_level_head());
    }
  }
}

void write_biwi(const Workplace& work) {
  for (int i = 0; i < 12; ++i) {
    const std::string stem = "data/0" + std::to_string(i % 3 + 1) + "/frame_0000" + std::to_string(i / 3 + 3);
    work.write(stem + "_rgb.png", png_of(64, 48, static_cast<uint8_t>(20 * i)));
    work.write(stem + "_pose.txt", "1 0 0 \n0 1 0 \n0 0 1 \n\n0 0 900 \n");
  }
}

void write_faces_in_videos(const Workplace& work) {
  for (const std::string split : {"train", "val"}) {
    for (int i = 0; i < 48; ++i) {
      const std::string video = "data/" + split + (i % 2 == 0 ? "/real" : "/fake") + "/v" + std::to_string(i % 24);
      work.write(video + "/frame_" + std::to_string(i / 24) + ".jpg", jpeg_of(40, 32, static_cast<uint8_t>(5 * i)));
    }
  }
}

void write_sounds(const Workplace& work) {
  for (const std::string split : {"train", "val"}) {
    for (int i = 0; i < 48; ++i) {
      work.write("data/" + split + "/" + std::to_string(i % 3) + "/" + std::to_string(i) + ".wav",
                 data::wav_of(data::tone_of(300 + 400 * (i % 3), 0.2, 8000), 8000));
    }
  }
}

struct Layout {
  std::function<void(const Workplace&)> write;
  const char* expected;  ///< part of the tree that an error shows
};

const Layout& folders() {
  static const Layout layout{write_class_folders, "<class>/*.jpg"};
  return layout;
}
const Layout& faces_300wlp() {
  static const Layout layout{write_300wlp, "<split>/**/<name>.jpg and <name>.mat"};
  return layout;
}
const Layout& faces_biwi() {
  static const Layout layout{write_biwi, "<subject>/frame_00003_rgb.png and frame_00003_pose.txt"};
  return layout;
}
const Layout& videos() {
  static const Layout layout{write_faces_in_videos, "<data-dir>/train/real/video_0001/frame_0002.jpg"};
  return layout;
}
const Layout& idx() {
  static const Layout layout{[](const Workplace& work) { write_idx(work, /*train_images=*/128); },
                             "train-images-idx3-ubyte"};
  return layout;
}

const Layout& hdf5() {
  static const Layout layout{write_spectrograms, "train.h5 and val.h5"};
  return layout;
}

const Layout& sounds() {
  static const Layout layout{write_sounds, "<class>/*.jpg"};
  return layout;
}

/// By path below configs/; an overlay follows the file that it changes.
struct Case {
  std::vector<std::string> files;
  const Layout& layout;
  const char* planned;  ///< part of the plan
  Words smaller = {};   ///< what makes its plan quick to try
};

const Words kSmallImages = {"--img-size", "64"};

const std::map<std::string, Case>& cases() {
  static const std::map<std::string, Case> all = {
      {"fashion_mnist", {{"fashion_mnist"}, idx(), "batch     128 images"}},
      {"fashion_mnist_best", {{"fashion_mnist_best"}, idx(), "length    36 epochs"}},
      {"bench/fashion_mnist_peer", {{"bench/fashion_mnist_peer"}, idx(), "model     peer_cnn"}},
      {"cifar10_fast", {{"cifar10_fast"}, folders(), "model     resnet9, 6,5"}},
      {"s0_image_classification",
       {{"s0_image_classification"}, folders(), "64 images per device x 2 accumulation", kSmallImages}},
      {"s1_deepfake", {{"s1_deepfake"}, videos(), "clips of 8 frames", kSmallImages}},
      {"s2_head_pose_300wlp", {{"s2_head_pose_300wlp"}, faces_300wlp(), "3 targets, task head-pose", kSmallImages}},
      {"s2_head_pose_biwi", {{"s2_head_pose_biwi"}, faces_biwi(), "3 targets, task head-pose", kSmallImages}},
      {"s3_imagenet_resnet50", {{"s3_imagenet_resnet50"}, folders(), "batch     256 images per device", kSmallImages}},
      {"s3_conservative",
       {{"s3_imagenet_resnet50", "s3_conservative"}, folders(), "batch     192 images per device", kSmallImages}},
      {"s3_balanced",
       {{"s3_imagenet_resnet50", "s3_balanced"}, folders(), "batch     256 images per device", kSmallImages}},
      {"s3_aggressive",
       {{"s3_imagenet_resnet50", "s3_aggressive"}, folders(), "batch     320 images per device", kSmallImages}},
      {"s4_spectrogram_hdf5", {{"s4_spectrogram_hdf5"}, hdf5(), "model     spectrogram_cnn"}},
      {"s4_sounds", {{"s4_sounds"}, sounds(), "3 classes"}},
      {"s4_gpu_rtx3090", {{"s4_spectrogram_hdf5", "s4_gpu_rtx3090"}, hdf5(), " 6144 samples per device"}},
      {"s4_gpu_rtx4080", {{"s4_spectrogram_hdf5", "s4_gpu_rtx4080"}, hdf5(), " 5120 samples per device"}},
      {"s4_gpu_rtx4090", {{"s4_spectrogram_hdf5", "s4_gpu_rtx4090"}, hdf5(), " 7168 samples per device"}},
      {"s4_gpu_rtx5090", {{"s4_spectrogram_hdf5", "s4_gpu_rtx5090"}, hdf5(), " 8192 samples per device"}},
      {"s4_gpu_a10g", {{"s4_spectrogram_hdf5", "s4_gpu_a10g"}, hdf5(), " 6144 samples per device"}},
      {"s4_gpu_h200", {{"s4_spectrogram_hdf5", "s4_gpu_h200"}, hdf5(), " 16384 samples per device"}},
  };
  return all;
}

fs::path configs() { return fs::path(STOKER_SOURCE_DIR) / "configs"; }

Words dry_run_of(const Case& config) {
  Words words;
  for (const std::string& file : config.files) {
    words.push_back("--config");
    words.push_back((configs() / (file + ".yaml")).string());
  }
  words.insert(words.end(), {"--data-dir", "data", "--dry-run", "--threads", "1", "--no-amp",
                             "--channels-last=auto"});  // nothing to measure
  words.insert(words.end(), config.smaller.begin(), config.smaller.end());
  return words;
}

TEST(ConfigFileTest, EveryFileStandsInTheTableAndNamesWhatToExpect) {
  std::set<std::string> known, found;
  for (const auto& [name, unused] : cases()) known.insert(name);
  for (const auto& entry : fs::recursive_directory_iterator(configs())) {
    if (entry.path().extension() != ".yaml") continue;
    found.insert(fs::relative(entry.path(), configs()).replace_extension().generic_string());
    EXPECT_NE(content_of_file(entry.path().string()).find("\n# Expected: "), std::string::npos) << entry.path();
  }
  EXPECT_EQ(found, known) << "a new file in configs/ needs a row with its layout here";
}

TEST(ConfigFileTest, EvalMeasuresTheSubjectsThatTrainingHeldOut) {
  const Workplace work;
  write_biwi(work);
  const Words train = {"--dataset", "biwi",       "--data-dir", "data",         "--model", "small_cnn", "--width",
                       "8",         "--img-size", "32",         "--batch-size", "4",       "--epochs",  "1",
                       "--threads", "1",          "--no-amp",   "--run-dir",    "run"};
  const Ended trained = run(train, work.path());
  ASSERT_EQ(trained.exit_code, 0) << story_of(train, trained);
  const auto eval = [&](Words words) {
    words.insert(words.begin(), {"eval", "run", "--threads", "1"});
    return run(words, work.path());
  };
  EXPECT_NE(eval({}).err.find("images 4  "), std::string::npos) << "of subject 03: " << eval({}).err;
  EXPECT_NE(eval({"--split", "train"}).err.find("images 8  "), std::string::npos);
  EXPECT_EQ(eval({"--split", "nosuch"}).exit_code, 66);
  fs::rename(work / "data", work / "other");
  EXPECT_NE(eval({"other"}).err.find("images 12  "), std::string::npos) << "all of other data: " << eval({"other"}).err;
}

TEST(ConfigFileTest, EvalOfARunWithoutValidationDataMeasuresNothingUnderItsName) {
  const Workplace work;
  write_class_folders(work);
  const Words train = {"--data-dir", "data/train", "--val-split", "none", "--model",  "tiny_cnn",  "--img-size", "32",
                       "--epochs",   "1",          "--threads",   "1",    "--no-amp", "--run-dir", "run"};
  const Ended trained = run(train, work.path());
  ASSERT_EQ(trained.exit_code, 0) << story_of(train, trained);
  const auto code = [&](Words words) {
    words.insert(words.begin(), {"eval", "run", "--threads", "1"});
    return run(words, work.path()).exit_code;
  };
  EXPECT_EQ(code({}), 66);
  EXPECT_EQ(code({"--split", "val"}), 66);
  EXPECT_EQ(code({"--split", "train"}), 0);
  EXPECT_EQ(code({"data/val"}), 0);
}

class ConfigFile : public ::testing::TestWithParam<std::string> {
 protected:
  const Case& config() const { return cases().at(GetParam()); }
};

TEST_P(ConfigFile, PlansARunOnDataInItsLayout) {
  const Workplace work;
  config().layout.write(work);
  const Words words = dry_run_of(config());
  const Ended ended = run(words, work.path());
  SCOPED_TRACE(story_of(words, ended));
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_NE(ended.out.find(config().planned), std::string::npos);
  EXPECT_NE(last_line(ended.err).find("reason=dry-run"), std::string::npos);
}

TEST_P(ConfigFile, ShowsTheTreeThatItExpectsWhenDataIsLaidOutOtherwise) {
  const Workplace work;
  work.write("data/pictures.zip", "x");
  const Words words = dry_run_of(config());
  const Ended ended = run(words, work.path());
  SCOPED_TRACE(story_of(words, ended));
  EXPECT_NE(ended.exit_code, 0);
  EXPECT_NE(ended.err.find(config().layout.expected), std::string::npos);
}

std::vector<std::string> names_of_cases() {
  std::vector<std::string> names;
  for (const auto& [name, unused] : cases()) names.push_back(name);
  return names;
}

std::string fact_of(const ::testing::TestParamInfo<std::string>& file) {
  std::string name = file.param;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Configs, ConfigFile, ::testing::ValuesIn(names_of_cases()), fact_of);

}  // namespace
}  // namespace stoker::cli
