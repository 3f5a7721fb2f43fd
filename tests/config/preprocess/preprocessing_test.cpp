// SPDX-License-Identifier: Apache-2.0
// The record of preprocessing: from options to JSON and back into options, and what is refused.
#include "config/preprocess/preprocessing.h"

#include <gtest/gtest.h>

#include "tests/config/resolved_words.h"

namespace stoker::config {
namespace {

using fixtures::Failure;
using fixtures::failure_of;

ResolvedOptions options_of(std::vector<std::string> words, DataFacts data = {4, 3, 300, 400, 1000}) {
  words.insert(words.begin(), {"--data-dir", "/data/photos"});
  core::MachineFacts machine;
  machine.cpus = 2;
  return fixtures::resolved(words, fixtures::facts_of(machine, data)).options;
}

Preprocessing photos() {
  return preprocessing_of(options_of({"--img-size", "192", "--crop-pct", "0.9", "--mean", "0.1,0.2,0.3"}),
                          {"cat", "dog", "fox", "owl"}, {});
}

Preprocessing again(const Preprocessing& record) { return preprocessing_from_json(to_json(record), "p.json"); }

Failure refusal_of(const core::Json& json) {
  return failure_of([&] { preprocessing_from_json(json, "folder/preprocess.json"); });
}

TEST(PreprocessingTest, DescribesWhatStandsBetweenAPhotoAndItsClass) {
  const core::Json json = to_json(photos());
  EXPECT_EQ(json.at("task"), "multiclass");
  EXPECT_EQ(json.at("class_names"), core::Json({"cat", "dog", "fox", "owl"}));
  EXPECT_EQ(json.at("input").at("height"), 192);
  EXPECT_EQ(json.at("input").at("channel_order"), "RGB");
  EXPECT_EQ(json.at("resize").at("rule"), "short-side");
  EXPECT_EQ(json.at("resize").at("short_side"), 213);  // floor(192 / 0.9)
  EXPECT_EQ(json.at("crop").at("rule"), "center");
  EXPECT_EQ(json.at("normalize").at("divide_by"), 255);
  EXPECT_EQ(json.at("normalize").at("mean"), core::Json({0.1, 0.2, 0.3}));
  EXPECT_EQ(json.at("normalize").at("std"), core::Json({0.229, 0.224, 0.225}));
  EXPECT_EQ(json.at("predictions").at("rule"), "softmax");
}

TEST(PreprocessingTest, TheShortSideIsExactWhereTheQuotientIs) {
  EXPECT_EQ(to_json(preprocessing_of(options_of({}), {}, {})).at("resize").at("short_side"), 256);  // 224 / 0.875
}

TEST(PreprocessingTest, WhatIsNotSquareLiesInTheSmallestResizedImageThatCoversIt) {
  const core::Json resize = to_json(preprocessing_of(options_of({"--img-size", "96,320"}), {}, {})).at("resize");
  EXPECT_EQ(resize.at("rule"), "cover");
  EXPECT_EQ(resize.at("height"), 109);  // floor(96 / 0.875)
  EXPECT_EQ(resize.at("width"), 365);
}

TEST(PreprocessingTest, ReadsBackWhatItWrote) {
  const std::vector<Preprocessing> records = {
      photos(),
      preprocessing_of(options_of({"--eval-crop", "none", "--img-size", "64", "--interpolation", "lanczos"}), {"a"},
                       {8, 0, 0, 0, "uint8"}),
      preprocessing_of(options_of({"--task", "binary", "--threshold", "0.3"}, {2, 1, 64, 64, 100}), {"no", "yes"}, {}),
      preprocessing_of(
          options_of({"--task", "regression", "--target-mean", "3.25", "--target-scale", "0.7"}, {1, 1, 64, 64, 100}),
          {"speed"}, {0, 64, 80, 6, "float32"}),
      preprocessing_of(options_of({"--task", "head-pose", "--pose-head", "binned,33"}), {"yaw", "pitch", "roll"}, {}),
      preprocessing_of(options_of({}), {"real", "fake"}, {8, 0, 0, 0, "uint8", 2}),
      preprocessing_of(options_of({"--eval-crop", "letterbox", "--img-size", "64"}), {"a"}, {}),
      preprocessing_of(options_of({"--img-size", "96,320"}), {"a"}, {})};
  EXPECT_EQ(again(records[6]).crop, EvalCrop::letterbox);
  EXPECT_EQ(to_json(records[6]).at("resize").at("rule"), "fit");
  EXPECT_EQ(again(records[5]).views, 2);
  EXPECT_EQ(to_json(records[1]).at("resize").at("filter"), "lanczos");
  for (const Preprocessing& record : records) EXPECT_EQ(to_json(again(record)), to_json(record));
  EXPECT_EQ(again(records[2]).threshold, std::vector<double>({0.3}));
  EXPECT_EQ(again(records[3]).target_scale, std::vector<double>({0.7}));
  EXPECT_EQ(again(records[3]).channels, 6);
  EXPECT_EQ(again(records[4]).pose_bins, 33);
}

TEST(PreprocessingTest, SoundsHaveTheirMelScaleAndNorm) {
  const Preprocessing record = preprocessing_of(options_of({"--mel-scale", "slaney,slaney"}, {2, 1, 128, 81, 100}),
                                                {"a", "b"}, {0, 128, 81, 1, "float32", 1, true});
  core::Json json = to_json(record);
  EXPECT_EQ(json.at("input").at("sound").at("mel_scale"), "slaney");
  EXPECT_EQ(json.at("input").at("sound").at("norm"), "slaney");
  Configuration configuration;
  take_over(again(record), "p.json", configuration);
  EXPECT_EQ(configuration.options.data.sound.mel_scale, MelScale::slaney);
  EXPECT_EQ(configuration.options.data.sound.mel_norm, MelNorm::slaney);
  json["input"]["sound"].erase("norm");  // as older programs wrote it
  EXPECT_EQ(preprocessing_from_json(json, "p.json").sound->mel_norm, MelNorm::none);
  json["input"]["sound"]["mel_scale"] = "bark";
  EXPECT_EQ(refusal_of(json).message,
            "folder/preprocess.json: mel_scale is 'bark', which this program does not support");
}

TEST(PreprocessingTest, ATemperatureAndThresholdsOfLabelsAreOfVersion2) {
  EXPECT_EQ(to_json(photos()).at("version"), 1) << "older programs read it";
  EXPECT_FALSE(to_json(photos()).at("predictions").contains("temperature"));
  Preprocessing record = photos();
  record.temperature = 1.75;
  EXPECT_EQ(to_json(record).at("version"), 2);
  EXPECT_EQ(again(record).temperature, 1.75);
  const Preprocessing labels = preprocessing_of(
      options_of({"--task", "multilabel", "--threshold", "0.3,0.6,0.25", "--temperature", "0.5"}, {3, 1, 64, 64, 100}),
      {"a", "b", "c"}, {});
  EXPECT_EQ(to_json(labels).at("version"), 2);
  EXPECT_EQ(again(labels).threshold, std::vector<double>({0.3, 0.6, 0.25}));
  Configuration configuration;
  take_over(labels, "p.json", configuration);
  EXPECT_EQ(configuration.options.task.threshold, labels.threshold);
  EXPECT_EQ(configuration.options.task.temperature, 0.5);
}

TEST(PreprocessingTest, DecidesOptionsButNotOverFlags) {
  Preprocessing record = photos();
  record.std = {0.5, 0.25, 0.125};
  record.interpolation = Interpolation::bicubic;
  Configuration configuration;
  take_over(record, "p.json", configuration);
  fixtures::parse_words({"--img-size", "96"}, configuration, "predict");
  const Options& options = configuration.options;
  EXPECT_EQ(options.data.mean.value(), std::vector<double>({0.1, 0.2, 0.3}));
  EXPECT_EQ(options.data.std.value(), record.std);
  EXPECT_EQ(options.augment.crop_pct.value(), 0.9);
  EXPECT_EQ(options.augment.interpolation, Interpolation::bicubic);
  EXPECT_EQ(options.data.num_classes.value(), 4);
  EXPECT_EQ(options.data.img_size.value().width, 96);
}

TEST(PreprocessingTest, ASizeIsThatOfTheRunsOptionsBesideIt) {
  const auto refusal = [](const std::string& yaml, const Preprocessing& record) {
    return failure_of([&] {
      Configuration configuration;
      read_run_config(yaml, "folder/config.yaml", configuration);
      take_over(record, "folder/preprocess.json", configuration);
    });
  };
  const std::string same = "data:\n  img-size: 192\n  num-classes: 4\n";
  EXPECT_EQ(refusal(same, photos()).message, "");
  Preprocessing huge = photos();
  huge.height = huge.width = 8192;
  EXPECT_EQ(refusal(same, huge).kind, core::ErrorKind::data);
  EXPECT_EQ(refusal(same, huge).message,
            "folder/preprocess.json: img-size is 8192 there, but 192 in the config.yaml beside it");
  EXPECT_EQ(refusal("data:\n  img-size: auto\n", huge).message, "");
}

TEST(PreprocessingTest, OneValueForSeveralTargetsIsThatOfTheRunsOptionsBesideIt) {
  const Preprocessing record = preprocessing_of(
      options_of({"--task", "regression", "--target-mean", "1,2", "--target-scale", "3"}, {2, 1, 8, 8, 9}), {"a", "b"},
      {});
  const auto message = [&](const std::string& yaml) {
    return failure_of([&] {
             Configuration configuration;
             read_run_config(yaml, "folder/config.yaml", configuration);
             take_over(record, "folder/preprocess.json", configuration);
           })
        .message;
  };
  EXPECT_EQ(message("task:\n  target-scale: [3]\n"), "");
  EXPECT_EQ(message("task:\n  target-scale: [4]\n"), "folder/preprocess.json: scale has 1 value for 2 targets");
}

TEST(PreprocessingTest, LeavesTheSizeOfAnImageAloneWhereSamplesAreTakenAsTheyAre) {
  Configuration configuration;
  take_over(preprocessing_of(options_of({}), {"a"}, {0, 64, 80, 6, "float32"}), "p.json", configuration);
  EXPECT_TRUE(configuration.options.data.img_size.is_auto());
  EXPECT_TRUE(configuration.options.data.in_chans.is_auto());
}

TEST(PreprocessingTest, RefusesWhatItDoesNotSupportWithPathAndKey) {
  const auto refused = [](const char* pointer, const core::Json& value, const std::string& words) {
    core::Json json = to_json(photos());
    json[core::Json::json_pointer(pointer)] = value;
    const Failure failure = refusal_of(json);
    EXPECT_EQ(failure.kind, core::ErrorKind::data) << pointer;
    EXPECT_EQ(failure.message.rfind("folder/preprocess.json: ", 0), 0u) << failure.message;
    EXPECT_NE(failure.message.find(words), std::string::npos) << failure.message;
  };
  refused("/version", 3, "version is 3");
  refused("/predictions/temperature", 0, "temperature is 0");
  refused("/predictions/temperature", "warm", ": type must be number");
  refused("/format", "other", "format");
  refused("/task", "juggling", "task is 'juggling'");
  refused("/resize/short_side", 300, "short_side is 300");
  refused("/resize/filter", "nearest", "filter is 'nearest'");
  refused("/resize/antialias", false, "antialias");
  refused("/input/channel_order", "BGR", "channel_order is \"BGR\"");
  refused("/input/height", 0, "height is 0");
  refused("/input/height", 96, "rule is \"short-side\", but this program supports \"cover\" only");
  refused("/normalize/divide_by", 1, "divide_by");
  refused("/normalize/mean", "gray", "type must be array");
  refused("/crop/share", 0, "share");
  refused("/predictions/rule", "sigmoid", "rule");
  refused("/class_names", {"1", "2", "3", "4", "5"}, "more names than outputs");
  refused("/num_classes", 3, "more names than outputs");
  refused("/normalize/std", {1, 1}, "mean and std differ in size");
  refused("/input/channels", 1 << 24, "channel_order");
  core::Json json = to_json(photos());
  json.erase("normalize");
  EXPECT_NE(refusal_of(json).message.find("normalize"), std::string::npos);
}

TEST(PreprocessingTest, SizesAgree) {
  const auto refused = [](std::vector<std::string> words, const std::vector<std::string>& names, const char* pointer,
                          const core::Json& value, const std::string& why) {
    const auto count = static_cast<int64_t>(names.size());
    core::Json json = to_json(preprocessing_of(options_of(std::move(words), {count, 1, 8, 8, 9}), names, {}));
    const auto refusal = [&] {
      return failure_of([&] {
               Configuration configuration;
               take_over(preprocessing_from_json(json, "p.json"), "p.json", configuration);
             })
          .message;
    };
    EXPECT_EQ(refusal(), "");
    json[core::Json::json_pointer(pointer)] = value;
    EXPECT_NE(refusal().find(why), std::string::npos) << pointer << ": " << refusal();
  };
  const std::vector<std::string> regression = {"--task", "regression",     "--target-mean",
                                               "1,2,3",  "--target-scale", "1,2,1"};
  refused(regression, {"a", "b", "c"}, "/num_classes", 4, "scale has 3 values for 4 targets");
  refused(regression, {"a", "b", "c"}, "/target_names", {"a"}, "1 name for 3 outputs of task regression");
  refused(regression, {"a", "b", "c"}, "/predictions/scale", {1, 2}, "scale has 2 values for 3 targets");
  refused(regression, {"a", "b", "c"}, "/predictions/scale", core::Json::array({1}), "scale has 1 value for 3 targets");
  refused(regression, {"a", "b", "c"}, "/predictions/mean", core::Json::array({1}), "mean has 1 value for 3 targets");
  refused(regression, {"a", "b", "c"}, "/predictions/scale/1", 1e308, "scale has 1e+308, which is out of range");
  refused(regression, {"a", "b", "c"}, "/predictions/scale/1", 1e-308, "scale has 1e-308, which is out of range");
  refused(regression, {"a", "b", "c"}, "/predictions/mean/0", -1e300, "out of range");
  refused(regression, {"a", "b", "c"}, "/normalize/std/0", 1e-308, "std has 1e-308, which is out of range");
  refused(regression, {"a", "b", "c"}, "/normalize/mean/0", 1e308, "mean has 1e+308, which is out of range");
  refused(regression, {"a", "b", "c"}, "/target_names/1", "a", "target_names has 'a' twice");
  refused({"--task", "multilabel"}, {"a", "b"}, "/target_names/1", "a", "target_names has 'a' twice");
  refused({"--task", "multilabel"}, {"a", "b"}, "/predictions/threshold", core::Json::array({0.5}),
          "threshold is a list of 1 value");
  refused(regression, {"a", "b", "c"}, "/predictions/mean", {1, 2, 3, 4}, "mean has 4 values for 3 targets");
  refused(regression, {"a", "b", "c"}, "/predictions/scale", core::Json::array(), "scale and mean have no value");
  refused({"--task", "multilabel"}, {"a", "b", "c"}, "/predictions/threshold", {0.1, 0.2},
          "threshold has 2 values for 3");
  refused({"--task", "binary"}, {"no", "yes"}, "/class_names", {"yes"}, "1 name for 2 outputs of task binary");
  refused({"--task", "multilabel"}, {"a", "b"}, "/num_classes", 3, "2 names for 3 outputs of task multilabel");
}

TEST(PreprocessingTest, RefusesValuesOutOfAnOptionsRange) {
  Preprocessing record = photos();
  record.std = {1, 1, -1};
  Configuration configuration;
  const Failure failure = failure_of([&] { take_over(record, "folder/preprocess.json", configuration); });
  EXPECT_EQ(failure.kind, core::ErrorKind::data);
  EXPECT_NE(failure.message.find("folder/preprocess.json: std: "), std::string::npos) << failure.message;
}

}  // namespace
}  // namespace stoker::config
