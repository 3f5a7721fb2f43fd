// SPDX-License-Identifier: Apache-2.0
#include "observe/observers/progress.h"

#include <gtest/gtest.h>

#include "tests/lines_of.h"

namespace stoker::observe {
namespace {

engine::ReportEvent report() {
  engine::ReportEvent event;
  event.at = {/*epoch=*/1, /*update_in_epoch=*/20, /*updates=*/120, /*images_in_epoch=*/2560, /*learning_rate=*/0.0625};
  event.train_loss = 0.41234;
  event.train_score = {"top1", engine::MetricUnit::percent, 85.25};
  event.images_per_second = 5432.1;
  event.data_wait_share = 0.0123;
  return event;
}

TEST(ProgressTest, AReportNamesEveryFigureWithItsUnit) {
  EXPECT_EQ(whole_line(report_parts(report())), "loss 0.4123  top1 85.2%  lr 0.0625  5,432 images/s  data wait 1%");
  EXPECT_NE(whole_line(report_parts(report(), "clips")).find("  5,432 clips/s  "), std::string::npos);
}

TEST(ProgressTest, EveryMetricHasItsUnit) {
  EXPECT_EQ(metric_text({"top1", engine::MetricUnit::percent, 85.25}, 2), "top1 85.25%");
  EXPECT_EQ(metric_text({"mae", engine::MetricUnit::degrees, 4.256}, 2), "mae 4.26 degrees");
  EXPECT_EQ(metric_text({"roc_auc", engine::MetricUnit::ratio, 0.98765}, 2), "roc_auc 0.9877");
  EXPECT_EQ(metric_text({"mae", engine::MetricUnit::number, 1234.56789}, 2), "mae 1234.6");
}

TEST(ProgressTest, GradientNormAndLossScaleAppearOnlyWhenThereAreSome) {
  engine::ReportEvent event = report();
  event.gradient_norm = 2.5;
  event.loss_scale = 65536;
  event.skipped_updates = 3;
  const std::string text = whole_line(report_parts(event));
  EXPECT_NE(text.find("grad norm 2.5"), std::string::npos);
  EXPECT_NE(text.find("loss scale 65536  skipped 3"), std::string::npos);
}

TEST(ProgressTest, OfSeveralRanksTheSlowestAndTheExchangeAreShown) {
  engine::ReportEvent event = report();
  event.ranks = {{"a", 0.1, 0, 0.04, 0.06, 0.01}, {"b", 0.1, 0, 0.01, 0.09, 0.01}};
  const std::string text = whole_line(report_parts(event));
  EXPECT_NE(text.find("data wait 1%  exchange 10%  slowest of 2 ranks: 1 +50%"), std::string::npos) << text;
}

TEST(ProgressTest, FiguresThatAreNotKnownAreNotThere) {
  ResourceReading reading;
  reading.cpu_percent = 45.2;
  EXPECT_EQ(whole_line(resource_parts(reading)), "CPU: 45.2%");
  EXPECT_EQ(fit_line(resource_parts(reading), 12), "CPU: 45.2%");
}

TEST(ProgressTest, WithoutATerminalReportsAreLines) {
  ::testing::internal::CaptureStdout();
  {
    Console console(false);
    Progress progress(console);
    progress.on_start({/*epochs=*/5, /*updates_per_epoch=*/100, /*total_updates=*/500, 6400, 0, 0, {}});
    progress.on_report(report());
    engine::EpochEvent epoch;
    epoch.epoch = 1;
    epoch.has_eval = true;
    epoch.metrics = {{"top1", engine::MetricUnit::percent, 91.5}, {"top5", engine::MetricUnit::percent, 99}};
    epoch.is_best = true;
    progress.on_epoch(epoch);
  }
  const std::string text = ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(text.find("epoch 2/5  update 20/100  ETA "), 0u) << text;
  EXPECT_NE(text.find("epoch 2/5 done"), std::string::npos);
  EXPECT_NE(text.find("top1 91.50%  top5 99.00%"), std::string::npos);
  EXPECT_NE(text.find("(best)"), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(ProgressTest, AnEpochIsTwoLinesOf80ColumnsAndADiagnosisIsPrintedWhenItChanges) {
  engine::EpochEvent epoch;
  epoch.has_eval = true;
  epoch.metrics = {{"top1", engine::MetricUnit::percent, 91.5}, {"top5", engine::MetricUnit::percent, 100}};
  epoch.is_best = true;
  epoch.images_per_second = 123456;
  epoch.train_seconds = epoch.eval_seconds = 7200;
  epoch.bad_images = 3;
  epoch.times.updates = 9;
  epoch.found.resources.emplace();
  epoch.found.resources->cpu_percent = 99.9;
  epoch.found.resources->ram_used_bytes = 1.5e9;
  epoch.found.resources->ram_limit_bytes = 25.3e9;
  epoch.found.diagnosis.emplace();
  epoch.found.diagnosis->advice = "--num-workers 1";
  ::testing::internal::CaptureStdout();
  {
    Console console(false);
    Progress progress(console);
    engine::StartEvent start;
    start.epochs = 100;
    progress.on_start(start);
    for (int i = 0; i < 2; ++i) progress.on_epoch(epoch);
    epoch.found.diagnosis->advice = "--num-workers 2";
    progress.on_epoch(epoch);
  }
  const std::string text = ::testing::internal::GetCapturedStdout();
  const std::vector<std::string> lines = lines_of(text);
  ASSERT_EQ(lines.size(), 8u) << text;
  for (const size_t i : {0, 1, 3, 4, 5, 6}) EXPECT_LE(lines[i].size(), 80u) << lines[i];
  for (const size_t i : {2, 7}) EXPECT_EQ(lines[i].rfind("  diagnosis: ", 0), 0u) << lines[i];
  EXPECT_NE(lines[1].find("bad images skipped: 3"), std::string::npos) << lines[1];
  EXPECT_EQ(text.find("n/a"), std::string::npos) << text;
  EXPECT_EQ(text.find("top5"), std::string::npos) << "all of them are among five";
}

TEST(ProgressTest, TheShareOfThePeakIsShownWhereItIsKnown) {
  ::testing::internal::CaptureStdout();
  {
    Console console(false);
    Progress progress(console);
    engine::StartEvent start;
    engine::EpochEvent epoch;
    epoch.images_per_second = 100;
    progress.on_start(start);
    progress.on_epoch(epoch);
    epoch.utilization = 0.5;
    progress.on_epoch(epoch);
  }
  const std::string text = ::testing::internal::GetCapturedStdout();
  const size_t unknown = text.find("100 images/s"), known = text.rfind("100 images/s");
  ASSERT_NE(unknown, known);
  EXPECT_EQ(text.find("100 images/s  MFU 50%"), known) << text;
}

}  // namespace
}  // namespace stoker::observe
