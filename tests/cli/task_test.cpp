// SPDX-License-Identifier: Apache-2.0
// Each task through the program: trains, reports its metrics, resumes to the same bits, evaluates and
// predicts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <sstream>

#include "tiny_data.h"

namespace stoker::cli {
namespace {

namespace fs = std::filesystem;

/// data/images/{0..15}.png from dark to bright, and data/{train,val}.csv with columns made of the brightness.
class TaskTest : public ::testing::Test {
 protected:
  void write_table(const std::string& columns, const std::function<std::string(int)>& row) {
    std::string table = "path," + columns + "\n";
    for (int i = 0; i < 16; ++i) {
      const std::string name = "images/" + std::to_string(i) + ".png";
      work_.write("data/" + name, png_of(8, 8, static_cast<uint8_t>(16 * i)));
      table += name + "," + row(i) + "\n";
    }
    work_.write("data/train.csv", table);
    work_.write("data/val.csv", table);
  }

  Ended succeed(const Words& words) {
    const Ended ended = run(words, work_.path());
    EXPECT_EQ(ended.exit_code, 0) << story_of(words, ended);
    return ended;
  }

  Ended train(const Words& more) {
    Words words = {"--batch-size", "8", "--hflip", "0", "--lr", "0.05"};
    words.insert(words.end(), more.begin(), more.end());
    return succeed(train_words(words));
  }

  std::vector<std::string> summary(const std::string& run_dir = "run") {
    return lines_of(content_of_file(work_ / (run_dir + "/summary.csv")));
  }

  const Workplace work_;
};

std::string number(double value) { return std::to_string(value); }

TEST_F(TaskTest, RegressionLearnsNumbersAndReportsTheirErrors) {
  write_table("age,size", [](int i) { return number(100 + i) + "," + number(-0.25 * i); });
  const Ended ended = train({"--task", "regression", "--epochs", "24", "-v"});
  EXPECT_NE(ended.out.find("2 targets, task regression"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("chosen    --target-mean 107.5,-1.875: of the training split"), std::string::npos)
      << ended.out;
  const std::vector<std::string> rows = summary();
  EXPECT_EQ(rows[0].rfind("epoch,train_loss,eval_loss,eval_mae,eval_rmse,lr,", 0), 0u) << rows[0];
  EXPECT_EQ(rows[0].substr(rows[0].rfind(',')), ",eval_r2");
  EXPECT_GT(std::strtod(rows.back().substr(rows.back().rfind(',') + 1).c_str(), nullptr), 0.8) << rows.back();

  const std::vector<std::string> table = lines_of(succeed({"eval", "run"}).out);
  ASSERT_EQ(table.size(), 4u);
  EXPECT_EQ(table[0], "target,mae,rmse,r2");
  EXPECT_EQ(table[1].rfind("age,", 0), 0u);
  const std::vector<std::string> predicted = lines_of(succeed({"predict", "run", "data/images", "--logits"}).out);
  ASSERT_EQ(predicted.size(), 17u);
  EXPECT_EQ(predicted[0], "path,age,size,output_0,output_1,error");
  const double age = std::strtod(predicted[1].substr(predicted[1].find(',') + 1).c_str(), nullptr);
  EXPECT_GT(age, 90) << "in the unit of the target: " << predicted[1];
  succeed({"eval", "run", "--output", "results"});
  EXPECT_EQ(lines_of(content_of_file(work_ / "results/images.csv"))[0], "path,true_age,true_size,age,size");
  EXPECT_TRUE(fs::exists(work_ / "results/per_target.csv"));
  EXPECT_EQ(run({"eval", "run", "--calibrate"}, work_.path()).exit_code, 78);
}

TEST_F(TaskTest, BinaryHasOneLogitAndRanks) {
  write_table("label", [](int i) { return std::string(i < 12 ? "real" : "unreal"); });
  const Ended ended = train({"--task", "binary", "--epochs", "10", "--pos-weight", "3", "--eval-metric", "roc-auc"});
  EXPECT_NE(ended.out.find("best      roc_auc 1.0000 in epoch"), std::string::npos) << ended.out;
  EXPECT_EQ(summary()[0].rfind("epoch,train_loss,eval_loss,eval_accuracy,eval_roc_auc,lr,", 0), 0u);
  succeed({"eval", "run", "--output", "results", "--logits", "--threshold", "0.9"});
  EXPECT_EQ(lines_of(content_of_file(work_ / "results/images.csv"))[0], "path,true,class,probability_unreal,logit");
  EXPECT_EQ(lines_of(content_of_file(work_ / "results/confusion.csv")).size(), 3u);
}

TEST_F(TaskTest, MultilabelHasALogitPerLabel) {
  write_table("dark,bright,even", [](int i) {
    return std::string(i < 8 ? "1," : "0,") + (i > 4 ? "1," : "0,") + (i % 2 == 0 ? "1" : "0");
  });
  train({"--task", "multilabel", "--epochs", "3", "--pos-weight", "1,2,1"});
  EXPECT_EQ(summary()[0].rfind("epoch,train_loss,eval_loss,eval_pr_auc,eval_roc_auc,lr,", 0), 0u);
  const std::vector<std::string> table = lines_of(succeed({"eval", "run"}).out);
  ASSERT_EQ(table.size(), 6u);
  EXPECT_EQ(table[0], "label,images,predicted,precision,recall,f1,roc_auc,pr_auc");
  EXPECT_EQ(table[1].rfind("dark,8,", 0), 0u) << table[1];
  EXPECT_EQ(lines_of(succeed({"predict", "run", "data/images"}).out)[0], "path,labels,dark,bright,even,error");
  const std::string high = succeed({"predict", "run", "data/images", "--threshold", "0.999,0.001,0.999"}).out;
  for (const std::string& row : lines_of(high)) EXPECT_TRUE(row.find(",bright,") != std::string::npos) << row;
  const Ended calibrated = succeed({"eval", "run", "--calibrate", "--json"});
  EXPECT_NE(calibrated.err.find(", f1 "), std::string::npos) << calibrated.err;
  EXPECT_NE(calibrated.out.find("\"threshold\": ["), std::string::npos) << calibrated.out;
  EXPECT_NE(content_of_file(work_ / "run/checkpoints/best/preprocess.json").find("\"threshold\": ["),
            std::string::npos);
  EXPECT_EQ(run({"predict", "run", "data/images", "--threshold", "0.5,0.5"}, work_.path()).exit_code, 78);
  const Ended top = run({"predict", "run", "data/images", "--top-k", "2"}, work_.path());
  EXPECT_EQ(top.exit_code, 64) << top.out;
  EXPECT_NE(top.err.find("this run learned multilabel"), std::string::npos) << top.err;
}

TEST_F(TaskTest, HeadPoseIsDirectOrBinned) {
  write_table("yaw,pitch,roll", [](int i) { return number(10 * i - 80) + "," + number(-i) + ",0.5"; });
  for (const char* const head : {"direct", "binned"}) {
    train({"--task", "head-pose", "--epochs", "2", "--pose-head", head, "--run-dir", head, "--hflip", "0.5"});
    EXPECT_EQ(summary(head)[0].rfind("epoch,train_loss,eval_loss,eval_mae,eval_rmse,lr,", 0), 0u);
    EXPECT_NE(summary(head)[0].find(",eval_mae_yaw,eval_mae_pitch,eval_mae_roll"), std::string::npos);
    const std::vector<std::string> table = lines_of(succeed({"eval", head}).out);
    ASSERT_EQ(table.size(), 5u);
    EXPECT_EQ(table[0], "angle,mae,rmse");
    EXPECT_EQ(lines_of(succeed({"predict", head, "data/images"}).out)[0], "path,yaw,pitch,roll,error");
  }
}

TEST_F(TaskTest, AStopAndAResumeGiveTheSameBits) {
  write_table("yaw,pitch,roll", [](int i) { return number(10 * i - 80) + "," + number(-i) + "," + number(i % 3); });
  const Words task = {"--task", "head-pose", "--epochs", "3", "--hflip", "0.5"};
  train(task);
  Words stopped = task;
  stopped.insert(stopped.end(), {"--run-dir", "again", "--max-updates", "3"});  // in the middle of epoch 2
  train(stopped);
  stopped[stopped.size() - 1] = "0";
  train(stopped);
  EXPECT_EQ(content_of_file(work_ / "again/checkpoints/last/model.safetensors"),
            content_of_file(work_ / "run/checkpoints/last/model.safetensors"));
  const auto figures = [](const std::string& row) {  // without the seven columns that clocks fill
    std::string text;
    std::istringstream cells(row);
    std::string cell;
    for (int column = 0; std::getline(cells, cell, ','); ++column) {
      if (column < 10 || column > 16) text += cell + ",";
    }
    return text;
  };
  EXPECT_EQ(figures(summary("again").back()), figures(summary("run").back()));
}

TEST_F(TaskTest, RareClassesAreBalancedByWeightsOrBySampling) {
  write_table("label", [](int i) { return std::string(i < 12 ? "many" : "few"); });
  const Ended weighed = train({"--class-weights", "auto", "-v"});
  EXPECT_NE(weighed.out.find("chosen    --class-weights 2,0.6666666666666666: from the images per class"),
            std::string::npos)
      << weighed.out;
  train({"--class-balanced", "--run-dir", "balanced", "--epochs", "2"});
  const Ended binary = train({"--task", "binary", "--pos-weight", "auto", "--run-dir", "binary", "-v"});
  EXPECT_NE(binary.out.find("chosen    --pos-weight 0.3333333333333333: negatives / positives"), std::string::npos)
      << binary.out;
}

TEST_F(TaskTest, WhatDoesNotFitTheTaskIsRefused) {
  write_table("x", [](int i) { return number(i); });
  const std::pair<Words, const char*> cases[] = {
      {{"--task", "regression", "--eval-metric", "top1"}, "eval-metric top1 is not computed for task regression"},
      {{"--task", "regression", "--label-smoothing", "0.1"}, "label-smoothing has no meaning for task regression"},
      {{"--task", "regression", "--target-scale", "1,2"}, "target-scale has 2 values, but there is 1 target"},
      {{"--task", "regression", "--class-balanced"}, "class-balanced needs a class per image"},
      {{"--task", "regression", "--class-weights", "auto"}, "class-weights is for the task multiclass"},
      {{"--pos-weight", "2"}, "pos-weight is for the tasks binary and multilabel"},
      {{"--task", "head-pose"}, "the header has no column 'yaw'"},
      {{"--task", "regresion"}, "did you mean regression?"}};
  for (const auto& [words, message] : cases) {
    const Ended ended = run(train_words(words), work_.path());
    EXPECT_NE(ended.exit_code, 0);
    EXPECT_NE(ended.err.find(message), std::string::npos) << story_of(words, ended);
  }
}

TEST_F(TaskTest, NumbersAreNotAveragedOverMirrorImages) {
  write_table("x", [](int i) { return number(i); });
  train({"--task", "regression"});
  for (const Words& words :
       {train_words({"--task", "regression", "--tta", "hflip", "--run-dir", "other"}),
        Words{"eval", "run", "--tta", "hflip"}, Words{"predict", "run", "data/images", "--tta", "hflip"}}) {
    const Ended ended = run(words, work_.path());
    EXPECT_EQ(ended.exit_code, 78) << story_of(words, ended);
    EXPECT_NE(
        ended.err.find("tta averages over mirror images or crops, but the numbers that task regression learns may be "
                       "others for them: set tta none"),
        std::string::npos)
        << ended.err;
  }
}

TEST_F(TaskTest, BinaryNeedsTwoClasses) {
  write_table("label", [](int i) { return std::to_string(i % 3); });
  const Ended ended = run(train_words({"--task", "binary"}), work_.path());
  EXPECT_NE(ended.err.find("task binary needs two classes, but the data has 3"), std::string::npos) << ended.err;
}

}  // namespace
}  // namespace stoker::cli
