// SPDX-License-Identifier: Apache-2.0
// libstoker predicts what `train predict` predicts, reports errors, and the examples that come with it work.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <thread>

#include "core/hash.h"
#include "embed/stoker.h"
#include "finished_run.h"

namespace stoker::cli {
namespace {

constexpr int kImages = 4;

class LibraryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    place_finished_run(work_);
    for (int i = 0; i < kImages; ++i) {
      contents_.push_back(png_of(8, 8, gray_of(i)));
      work_.write("images/" + std::to_string(i) + ".png", contents_.back());
    }
  }
  void TearDown() override { stoker_close(network_); }

  static uint8_t gray_of(int image) { return static_cast<uint8_t>(60 * image); }
  std::string path_of(int image) const { return work_ / ("images/" + std::to_string(image) + ".png"); }

  /// All probabilities that the program gives of the images, a row each, by way of its CSV.
  std::vector<std::vector<float>> predicted(const Words& more = {}) {
    Words words = {"predict", "run", "images", "--probabilities", "--num-workers", "1"};
    words.insert(words.end(), more.begin(), more.end());
    const Ended ended = run(words, work_.path());
    EXPECT_EQ(ended.exit_code, 0) << story_of(words, ended);
    std::vector<std::vector<float>> rows;
    bool is_header = true;
    for (const std::string& line : lines_of(ended.out)) {
      if (!is_header) rows.push_back(numbers_behind_the_class(line));
      is_header = false;
    }
    return rows;
  }
  /// path, class, probability of it, then those of all classes.
  static std::vector<float> numbers_behind_the_class(const std::string& line) {
    std::vector<float> numbers;
    std::istringstream cells(line);
    std::string cell;
    for (int i = 0; std::getline(cells, cell, ','); ++i) {
      if (i >= 3) numbers.push_back(std::stof(cell));
    }
    return numbers;
  }

  stoker_network* open(const std::string& path, const char* which = nullptr) {
    stoker_close(network_);
    network_ = stoker_open(path.c_str(), which);
    EXPECT_NE(network_, nullptr) << stoker_error();
    return network_;
  }
  static std::vector<float> predictions_of(stoker_network* network, const std::string& file) {
    std::vector<float> predictions(static_cast<size_t>(stoker_outputs(network)));
    EXPECT_EQ(stoker_classify_file_bytes(network, file.data(), file.size(), predictions.data()), 0) << stoker_error();
    return predictions;
  }
  static void expect_near(const std::vector<float>& predictions, const std::vector<float>& expected) {
    ASSERT_EQ(predictions.size(), expected.size());
    for (size_t i = 0; i < predictions.size(); ++i) EXPECT_NEAR(predictions[i], expected[i], 2e-6) << i;
  }
  /// Standard output of a command that ends well.
  static std::string out_of(const std::string& command) {
    FILE* const pipe = ::popen(command.c_str(), "r");
    std::string out;
    char part[4096];
    for (size_t count; (count = std::fread(part, 1, sizeof part, pipe)) > 0;) out.append(part, count);
    EXPECT_EQ(::pclose(pipe), 0) << command << "\n" << out;
    return out;
  }

  const Workplace work_;
  std::vector<std::string> contents_;
  stoker_network* network_ = nullptr;
};

TEST_F(LibraryTest, FilesAndPixelsGetTheProbabilitiesOfPredict) {
  const auto expected = predicted();
  ASSERT_EQ(expected.size(), static_cast<size_t>(kImages));
  open(work_ / "run");
  bool differ = false;
  for (int i = 0; i < kImages; ++i) {
    const std::vector<float> predictions = predictions_of(network_, contents_[static_cast<size_t>(i)]);
    expect_near(predictions, expected[static_cast<size_t>(i)]);
    const std::vector<uint8_t> pixels(8 * 8, gray_of(i));
    std::vector<float> of_pixels(predictions.size());
    ASSERT_EQ(stoker_classify_pixels(network_, pixels.data(), 8, 8, 1, of_pixels.data()), 0) << stoker_error();
    EXPECT_EQ(of_pixels, predictions);
    differ |= predictions != predictions_of(network_, contents_[0]);
  }
  EXPECT_TRUE(differ) << "a network with the same predictions for all images shows nothing";
}

TEST_F(LibraryTest, ACalibratedCheckpointGivesTheProbabilitiesOfPredict) {
  const auto before = predicted();
  const Words words = {"eval", "run", "--calibrate", "--threads", "1"};
  const Ended ended = run(words, work_.path());
  ASSERT_EQ(ended.exit_code, 0) << story_of(words, ended);
  const auto expected = predicted();
  EXPECT_NE(expected, before);
  open(work_ / "run");
  EXPECT_NE(std::string(stoker_preprocess_json(network_)).find("\"temperature\": "), std::string::npos);
  for (size_t i = 0; i < kImages; ++i) expect_near(predictions_of(network_, contents_[i]), expected[i]);
}

TEST_F(LibraryTest, OpensBestOrLastAndCheckpoints) {
  const auto last = predicted({"--which", "last"});
  expect_near(predictions_of(open(work_ / "run", "last"), contents_[1]), last[1]);
  expect_near(predictions_of(open(work_ / "run/checkpoints/step-00000008"), contents_[1]), last[1]);
}

TEST_F(LibraryTest, NamesAndPreprocessingAreThoseOfTheCheckpoint) {
  open(work_ / "run");
  ASSERT_EQ(stoker_outputs(network_), 10);
  EXPECT_STREQ(stoker_name(network_, 3), "3");
  EXPECT_EQ(stoker_name(network_, 10), nullptr);
  EXPECT_EQ(stoker_name(network_, -1), nullptr);
  EXPECT_NE(std::string(stoker_preprocess_json(network_)).find("\"height\": 8"), std::string::npos)
      << stoker_preprocess_json(network_);
}

TEST_F(LibraryTest, WhatIsWrongIsACodeAndAText) {
  EXPECT_EQ(stoker_open((work_ / "nothing").c_str(), nullptr), nullptr);
  EXPECT_NE(std::string(stoker_error()).find(work_ / "nothing"), std::string::npos) << stoker_error();
  EXPECT_EQ(stoker_open(nullptr, nullptr), nullptr);
  EXPECT_STRNE(stoker_error(), "");

  open(work_ / "run");
  EXPECT_STREQ(stoker_error(), "");
  float predictions[10];
  EXPECT_EQ(stoker_classify_file_bytes(network_, "no image", 8, predictions), 65);
  EXPECT_NE(std::string(stoker_error()).find("image"), std::string::npos) << stoker_error();
  EXPECT_EQ(stoker_classify_file_bytes(network_, nullptr, 0, predictions), 65);
  EXPECT_EQ(stoker_classify_file_bytes(nullptr, "x", 1, predictions), 64);
  EXPECT_EQ(stoker_classify_file_bytes(network_, "x", 1, nullptr), 64);
  const uint8_t pixels[64] = {};
  EXPECT_EQ(stoker_classify_pixels(network_, pixels, 8, 4, 2, predictions), 64);
  EXPECT_EQ(stoker_classify_pixels(network_, pixels, 0, 8, 1, predictions), 64);
  EXPECT_EQ(stoker_classify_pixels(network_, pixels, 8, 8, 1, predictions), 0) << "it works after errors";
  EXPECT_STREQ(stoker_error(), "");
  stoker_close(nullptr);
}

/// Replaces text in a file of a checkpoint and brings the manifest in line, as anybody can.
void change_record(const std::string& folder, const std::string& from, const std::string& to,
                   const std::string& file = "preprocess.json") {
  const std::string before = content_of_file(folder + "/" + file);
  std::string after = before, manifest = content_of_file(folder + "/manifest.json");
  ASSERT_NE(after.find(from), std::string::npos) << from << "\n" << before;
  after.replace(after.find(from), from.size(), to);
  std::ofstream(folder + "/" + file) << after;
  const auto replace = [&](const std::string& old, const std::string& now) {
    const size_t at = manifest.find(old, manifest.find("\"" + file + "\""));
    ASSERT_NE(at, std::string::npos) << manifest;
    manifest.replace(at, old.size(), now);
  };
  replace(std::to_string(before.size()), std::to_string(after.size()));
  replace(core::hash_hex(before), core::hash_hex(after));
  std::ofstream(folder + "/manifest.json") << manifest;
}

TEST_F(LibraryTest, ARecordThatDisagreesWithItselfOrTheNetworkIsRefusedAtOpening) {
  const std::pair<const char*, const char*> changes[] = {{"\"num_classes\": 10", "\"num_classes\": 3"},
                                                         {"\"num_classes\": 10", "\"num_classes\": 12"},
                                                         {"\"height\": 8", "\"height\": 9000000000000000000"},
                                                         {"\"width\": 8", "\"width\": -8"},
                                                         {"\"std\": [", "\"std\": [\n   0.5,"},
                                                         {"multiclass", "multilabel"},
                                                         {"multiclass", "binary"}};
  for (const auto& [from, to] : changes) {
    const Workplace work;
    place_finished_run(work);
    change_record(work / "run/checkpoints/step-00000008", from, to);
    stoker_network* const network = stoker_open((work / "run").c_str(), "last");
    EXPECT_EQ(network, nullptr) << to;
    EXPECT_STRNE(stoker_error(), "") << to;
    stoker_close(network);
  }
}

/// Another size in all that a checkpoint notes of it.
void change_size(const std::string& folder, int from, int to) {
  const std::string before = std::to_string(from), after = std::to_string(to);
  change_record(folder, "\"height\": " + before, "\"height\": " + after);
  change_record(folder, "\"width\": " + before, "\"width\": " + after);
  change_record(folder, "\"short_side\": " + before, "\"short_side\": " + after);
  change_record(folder, "img-size: " + before, "img-size: " + after, "config.yaml");
  std::string manifest = content_of_file(folder + "/manifest.json");
  const std::string noted = "\"img-size\": \"" + before + "\"";
  ASSERT_NE(manifest.find(noted), std::string::npos) << manifest;
  manifest.replace(manifest.find(noted), noted.size(), "\"img-size\": \"" + after + "\"");
  std::ofstream(folder + "/manifest.json") << manifest;
}

TEST_F(LibraryTest, AnImageHasAMostNumberOfPixels) {
  const std::string checkpoint = work_ / "run/checkpoints/step-00000008";
  change_size(checkpoint, 8, 16);
  stoker_network* network = stoker_open((work_ / "run").c_str(), "last");
  EXPECT_NE(network, nullptr) << stoker_error();
  stoker_close(network);
  change_size(checkpoint, 16, 8192);
  network = stoker_open((work_ / "run").c_str(), "last");
  EXPECT_EQ(network, nullptr);
  EXPECT_NE(
      std::string(stoker_error()).find("/preprocess.json: height 8192 x width 8192 are more than the 16,777,216 "),
      std::string::npos)
      << stoker_error();
  stoker_close(network);
}

/// Its position embedding has a row for each patch.
TEST_F(LibraryTest, ATransformerOpensAtTheSizeOfItsTensorsAlone) {
  const Workplace work;
  write_idx(work);
  const Words words = train_words({"--model", "vit_s_16", "--img-size", "32", "--max-updates", "1"});
  const Ended ended = run(words, work.path());
  ASSERT_EQ(ended.exit_code, 0) << story_of(words, ended);
  change_size(work / "run/checkpoints/last", 32, 2048);
  stoker_network* const network = stoker_open((work / "run").c_str(), "last");
  EXPECT_EQ(network, nullptr);
  EXPECT_NE(std::string(stoker_error()).find("pos_embedding"), std::string::npos) << stoker_error();
  stoker_close(network);
}

/// A network of one target whose record has the scales of three would answer with three numbers: more than whoever
/// calls holds.
TEST_F(LibraryTest, AnAnswerNeverHasMoreNumbersThanNames) {
  const Workplace work;
  std::string table = "path,age\n";
  for (int i = 0; i < 8; ++i) {
    work.write("data/" + std::to_string(i) + ".png", png_of(8, 8, static_cast<uint8_t>(30 * i)));
    table += std::to_string(i) + ".png," + std::to_string(i) + "\n";
  }
  work.write("data/train.csv", table);
  work.write("data/val.csv", table);
  const Words words = train_words({"--task", "regression", "--target-mean", "3", "--target-scale", "2"});
  const Ended ended = run(words, work.path());
  ASSERT_EQ(ended.exit_code, 0) << story_of(words, ended);
  stoker_network* network = stoker_open((work / "run").c_str(), "last");
  ASSERT_NE(network, nullptr) << stoker_error();
  EXPECT_EQ(stoker_outputs(network), 1);
  stoker_close(network);

  const std::string checkpoint = work / "run/checkpoints/last";
  change_record(checkpoint, "\"scale\": [\n   2.0", "\"scale\": [\n   2.0, 2.0, 2.0");
  network = stoker_open((work / "run").c_str(), "last");
  EXPECT_EQ(network, nullptr);
  EXPECT_NE(std::string(stoker_error()).find("scale has 3 values for 1 target"), std::string::npos) << stoker_error();
  stoker_close(network);
}

TEST_F(LibraryTest, SeveralThreadsMayAskOneNetwork) {
  open(work_ / "run");
  std::vector<std::vector<float>> expected;
  for (const std::string& content : contents_) expected.push_back(predictions_of(network_, content));
  std::vector<std::thread> threads;
  for (int i = 0; i < kImages; ++i) {
    threads.emplace_back([&, image = static_cast<size_t>(i)] {
      for (int round = 0; round < 20; ++round) EXPECT_EQ(predictions_of(network_, contents_[image]), expected[image]);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(LibraryTest, ExamplesInCCppAndPythonSayTheClassThatPredictSays) {
  const auto expected = predicted();
  const std::string run_and_image = " " + (work_ / "run") + " " + path_of(2);
  const auto best = std::max_element(expected[2].begin(), expected[2].end());
  const std::string name = std::to_string(best - expected[2].begin());
  for (const std::string program : {STOKER_EXAMPLE_IN_C, STOKER_EXAMPLE_IN_CPP,
                                    "LD_LIBRARY_PATH=" STOKER_LIBRARY_FOLDER " python3 " STOKER_EXAMPLE_IN_PYTHON}) {
    std::istringstream words(out_of(program + run_and_image));
    std::string path, label;
    double probability = 0;
    words >> path >> label >> probability;
    EXPECT_EQ(path, path_of(2)) << program;
    EXPECT_EQ(label, name) << program;
    EXPECT_NEAR(probability, *best, 2e-6) << program;
  }
}

}  // namespace
}  // namespace stoker::cli
