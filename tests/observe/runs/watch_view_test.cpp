// SPDX-License-Identifier: Apache-2.0
#include "observe/runs/watch_view.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace stoker::observe {
namespace {

/// Row and column of the first `mark` in lines; -1: there is none.
std::pair<int, int> place_of(const std::vector<std::string>& lines, char mark, size_t from_row = 1) {
  for (size_t row = from_row; row < lines.size(); ++row) {
    const size_t column = lines[row].find(mark);
    if (column != std::string::npos) return {static_cast<int>(row), static_cast<int>(column)};
  }
  return {-1, -1};
}

Chart rising() {
  Chart chart;
  chart.title = "score";
  chart.x_label = "epochs";
  chart.lines.push_back({"up", {0, 10}, {0, 100}, 0, false});
  return chart;
}

TEST(TextChartTest, ARisingLineGoesFromTheLowerLeftToTheUpperRight) {
  const std::vector<std::string> lines = text_chart(rising(), "*", 60, 12);
  ASSERT_EQ(lines.size(), 12u);
  for (const std::string& line : lines) EXPECT_EQ(line.size(), 60u) << line;
  EXPECT_EQ(lines[0].rfind("score  * up 100", 0), 0u) << lines[0];
  EXPECT_EQ(lines[1].rfind("    100 |", 0), 0u) << lines[1];
  EXPECT_EQ(lines[9].rfind("      0 |*", 0), 0u) << lines[9];
  EXPECT_EQ(lines[1].back(), '*');
  for (size_t row = 2; row < 10; ++row) EXPECT_LT(lines[row].find('*'), lines[row - 1].find('*'));
  EXPECT_NE(lines[11].find("10 epochs"), std::string::npos);
}

TEST(TextChartTest, HasPlainCharactersAloneAndNothingWithoutPoints) {
  Chart chart = rising();
  chart.lines.push_back({"ma\x1b[31mlice \xc3\xa4", {5}, {50}, 0, false});
  for (const std::string& line : text_chart(chart, "*o", 60, 12)) {
    EXPECT_EQ(line.find('\x1b'), std::string::npos) << line;
  }
  EXPECT_TRUE(text_chart(Chart(), "*", 60, 12).empty());
}

TEST(TextChartTest, AConstantLineLiesInTheMiddle) {
  Chart chart = rising();
  chart.lines.front().y = {3, 3};
  EXPECT_EQ(place_of(text_chart(chart, "*", 60, 12), '*').first, 5);
}

WatchedRun run_of(const std::string& path, const std::string& state) {
  WatchedRun run;
  run.listed.path = path;
  run.listed.state = state;
  run.listed.epochs = 8;
  run.listed.epochs_done = 2;
  run.listed.updates = 1234;
  run.listed.best_metric = "top1";
  run.listed.best_value = 91.5;
  run.listed.best_epoch = 2;
  run.record.epoch_columns = {"epoch", "train_loss", "eval_loss", "eval_top1"};
  run.record.by_epoch["eval_loss"] = {{1, 2}, {0.5, 0.4}};
  run.record.by_epoch["eval_top1"] = {{1, 2}, {90, 91.5}};
  run.record.by_report["train_loss"] = {{0.5, 1, 1.5, 2}, {0.9, 0.6, 0.5, 0.45}};
  return run;
}

TEST(WatchViewTest, ARunHasItsLineAndTwoCharts) {
  const std::vector<std::string> lines = watch_view({run_of("runs/a", "training")}, 120, 30);
  EXPECT_EQ(lines[0].rfind("runs/a  training  epoch 3/8  update 1,234", 0), 0u) << lines[0];
  EXPECT_NE(lines[0].find("best top1 91.5 in epoch 2"), std::string::npos) << lines[0];
  EXPECT_EQ(lines[1].rfind("loss  o validation 0.4  . training 0.45", 0), 0u) << lines[1];
  EXPECT_NE(lines[1].find("top1  o validation 91.5"), std::string::npos) << "side by side: " << lines[1];
  for (const std::string& line : lines) EXPECT_LE(line.size(), 120u);
  EXPECT_LE(lines.size(), 30u);
}

TEST(WatchViewTest, SeveralRunsShareChartsWithALetterEach) {
  const std::vector<std::string> lines =
      watch_view({run_of("runs/a", "finished"), run_of("runs/b", "training")}, 80, 40);
  EXPECT_EQ(lines[0].rfind("a  runs/a  finished  epoch 2/8", 0), 0u) << lines[0];
  EXPECT_EQ(lines[1].rfind("b  runs/b  training  epoch 3/8", 0), 0u) << lines[1];
  EXPECT_EQ(lines[2].rfind("validation loss", 0), 0u) << lines[2];
}

TEST(WatchViewTest, FitsAnyTerminal) {
  const std::vector<WatchedRun> runs = {run_of("runs/a", "finished"), run_of("runs/b", "training")};
  for (const int columns : {1, 20, 45, 99, 100, 300}) {
    for (const int rows : {1, 2, 9, 24, 100}) {
      const std::vector<std::string> lines = watch_view(runs, columns, rows);
      EXPECT_LE(static_cast<int>(lines.size()), rows);
      EXPECT_GE(lines.size(), 1u);
      for (const std::string& line : lines) EXPECT_LE(static_cast<int>(line.size()), columns);
    }
  }
}

TEST(WatchViewTest, ARunWithoutCurvesHasItsLineAlone) {
  WatchedRun run;
  run.listed.path = "runs/new";
  run.listed.state = "training";
  EXPECT_EQ(watch_view({run}, 100, 30).size(), 1u);
}

}  // namespace
}  // namespace stoker::observe
