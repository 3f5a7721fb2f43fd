// SPDX-License-Identifier: Apache-2.0
// The intervals and the calibration of `train eval`, and which of two runs is better.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "finished_run.h"

namespace stoker::cli {
namespace {

std::vector<std::string> csv_cells(const std::string& row) {
  std::vector<std::string> cells;
  std::istringstream stream(row);
  for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
  return cells;
}

class CertaintyCommandTest : public ::testing::Test {
 protected:
  void SetUp() override { place_finished_run(work_); }
  Ended eval(Words more) {
    Words words = {"eval", "run", "--threads", "1", "--num-workers", "1"};
    words.insert(words.end(), more.begin(), more.end());
    const Ended ended = run(words, work_.path());
    EXPECT_EQ(ended.exit_code, 0) << story_of(words, ended);
    return ended;
  }
  const Workplace work_;
};

TEST_F(CertaintyCommandTest, EvalPrintsIntervalsAndCalibration) {
  const std::string printed = eval({}).err;
  EXPECT_NE(printed.find("\n95 % confidence intervals:  loss "), std::string::npos) << printed;
  EXPECT_NE(printed.find("  top1 "), std::string::npos) << printed;
  EXPECT_NE(printed.find("\ncalibration  mean confidence "), std::string::npos) << printed;
}

TEST_F(CertaintyCommandTest, TheSameSeedGivesTheSameIntervalsAndNoResamplesNone) {
  const std::string json = eval({"--json"}).out;
  EXPECT_EQ(eval({"--json"}).out, json);
  EXPECT_NE(eval({"--json", "--seed", "7"}).out, json);
  const std::string none = eval({"--resamples", "0"}).err;
  EXPECT_EQ(none.find("95 %"), std::string::npos) << none;
  EXPECT_EQ(run({"eval", "run", "--resamples", "-1"}, work_.path()).exit_code, 64);
  const Ended too_few = run({"eval", "run", "--resamples", "2"}, work_.path());
  EXPECT_EQ(too_few.exit_code, 64);
  EXPECT_NE(too_few.err.find("--resamples: 2 is too few for a 95 % interval"), std::string::npos) << too_few.err;
}

TEST_F(CertaintyCommandTest, ARunAgainstItselfHasNoWinner) {
  const std::string printed = eval({"--against", "run"}).err;
  EXPECT_NE(printed.find("run against run, on the same 20 images"), std::string::npos) << printed;
  EXPECT_NE(printed.find("no significant difference: run minus run is 0.00 points (95 %: -"), std::string::npos)
      << printed;
  EXPECT_EQ(printed.find(" beats "), std::string::npos) << printed;
}

TEST_F(CertaintyCommandTest, FilesOfAnEvaluationAreShownInTheReport) {
  eval({"--output", "run/eval", "--against", "run/checkpoints/step-00000004"});
  EXPECT_NE(content_of_file(work_ / "run/eval/certainty.json").find("\"calibration\": {"), std::string::npos);
  EXPECT_EQ(lines_of(content_of_file(work_ / "run/eval/reliability.csv")).size(), 16u);
  const std::string page = content_of_file(work_ / "run/report.html");
  EXPECT_NE(page.find("Intervals and reliability"), std::string::npos);
  EXPECT_NE(page.find("Reliability"), std::string::npos);
  EXPECT_NE(page.find("on the same images"), std::string::npos);
}

/// The number behind `key` in JSON.
double json_number(const std::string& json, const std::string& key) {
  const size_t at = json.find("\"" + key + "\": ");
  EXPECT_NE(at, std::string::npos) << key << "\n" << json;
  return at == std::string::npos ? 0 : std::stod(json.substr(at + key.size() + 4));
}

TEST_F(CertaintyCommandTest, ATemperatureIsStoredUsedAndFoundAgain) {
  const std::string record_path = work_ / "run/checkpoints/best/preprocess.json";
  const Ended ended = eval({"--calibrate", "--json"});
  const double temperature = json_number(ended.out, "temperature");
  EXPECT_NE(temperature, 1);
  EXPECT_GT(json_number(ended.out, "fitted"), 0);
  EXPECT_NE(ended.err.find("ECE "), std::string::npos) << ended.err;
  const std::string record = content_of_file(record_path);
  EXPECT_EQ(json_number(record, "temperature"), temperature);
  EXPECT_EQ(json_number(eval({"--calibrate", "--json"}).out, "temperature"), temperature);
  EXPECT_EQ(content_of_file(record_path), record) << "whatever was stored before";
  const Words predict = {"predict", "run", "data/image.png", "--probabilities", "--logits", "--num-workers", "1"};
  work_.write("data/image.png", png_of(8, 8, 90));
  const Ended predicted = run(predict, work_.path());
  ASSERT_EQ(predicted.exit_code, 0) << story_of(predict, predicted);
  EXPECT_NE(predicted.err.find("calibrated: outputs are divided by a temperature of"), std::string::npos)
      << predicted.err;
  const std::vector<std::string> cells = csv_cells(lines_of(predicted.out)[1]);
  double sum = 0;
  for (size_t k = 0; k < 10; ++k) sum += std::exp(std::stod(cells[13 + k]) / temperature);
  for (size_t k = 0; k < 10; ++k) {
    EXPECT_NEAR(std::stod(cells[3 + k]), std::exp(std::stod(cells[13 + k]) / temperature) / sum, 1e-7);
  }
  const Ended verified = run({"inspect", "verify", "run"}, work_.path());
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  const Ended refused = run({"eval", "run", "--calibrate", "--split", "train"}, work_.path());
  EXPECT_EQ(refused.exit_code, 64) << refused.err;
}

TEST_F(CertaintyCommandTest, FeaturesAreWhatTheClassifierTakesAndMapsArePictures) {
  for (const char* const name : {"a", "b"}) {
    work_.write(std::string("images/") + name + ".png", png_of(8, 8, name[0] == 'a' ? 30 : 200));
  }
  const auto predicted = [&](Words more) {
    Words words = {"predict", "run", "images", "--num-workers", "1", "--threads", "1"};
    words.insert(words.end(), more.begin(), more.end());
    const Ended ended = run(words, work_.path());
    EXPECT_EQ(ended.exit_code, 0) << story_of(words, ended);
    return lines_of(ended.out);
  };
  const auto features = predicted({"--features"}), logits = predicted({"--logits"});
  ASSERT_EQ(features.size(), 3u);
  EXPECT_EQ(features[0].rfind("path,feature_0,feature_1,", 0), 0u) << features[0];
  const std::string weights = content_of_file(work_ / "run/checkpoints/best/model.safetensors");
  const uint64_t header = *reinterpret_cast<const uint64_t*>(weights.data());
  const std::string names = weights.substr(8, header);
  const auto tensor = [&](const std::string& name) {
    const size_t at = names.find("\"data_offsets\":[", names.find("\"" + name + "\"")) + 16;
    return reinterpret_cast<const float*>(weights.data() + 8 + header + std::stoull(names.substr(at)));
  };
  const float *weight = tensor("fc.weight"), *bias = tensor("fc.bias");
  for (size_t row = 1; row <= 2; ++row) {
    const auto inputs = csv_cells(features[row]), outputs = csv_cells(logits[row]);
    const size_t count = inputs.size() - 1;
    for (size_t k = 0; k < 10; ++k) {
      double sum = bias[k];
      for (size_t i = 0; i < count; ++i) sum += std::stod(inputs[1 + i]) * weight[k * count + i];
      EXPECT_NEAR(sum, std::stod(outputs[3 + k]), 1e-4) << row << " " << k;
    }
  }
  EXPECT_EQ(predicted({"--explain", "heat"}), predicted({}));
  EXPECT_EQ(content_of_file(work_ / "heat/000000_a.png").substr(1, 3), "PNG");
  EXPECT_NE(content_of_file(work_ / "heat/000001_b.png"), content_of_file(work_ / "heat/000000_a.png"));
  EXPECT_NE(content_of_file(work_ / "run/worst.json").find("\"heat\": \"/9j/"), std::string::npos) << "a JPEG";
  EXPECT_EQ(run({"predict", "run", "images", "--features", "--logits"}, work_.path()).exit_code, 64);
  EXPECT_EQ(run({"predict", "run", "images", "--features", "-o", "x.npy"}, work_.path()).exit_code, 64);
}

TEST_F(CertaintyCommandTest, ARunOfOtherClassesIsRefused) {
  const Workplace other;
  write_folders(other);
  ASSERT_EQ(run(train_words(), other.path()).exit_code, 0);
  const Ended ended = run({"eval", "run", "--against", other / "run"}, work_.path());
  EXPECT_EQ(ended.exit_code, 65) << ended.err;
}

}  // namespace
}  // namespace stoker::cli
