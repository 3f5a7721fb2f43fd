// SPDX-License-Identifier: Apache-2.0
#include "observe/listeners/run_files.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "core/error.h"
#include "core/system/file.h"
#include "tests/temporary_directory.h"

namespace stoker::observe {
namespace {

std::vector<engine::Metric> metrics(double top1, double top5, double f1) {
  return {{"top1", engine::MetricUnit::percent, top1},
          {"top5", engine::MetricUnit::percent, top5},
          {"f1", engine::MetricUnit::ratio, f1}};
}

engine::StartEvent start_at(int64_t epoch) {
  engine::StartEvent event;
  event.epochs = 5;
  event.start_epoch = epoch;
  event.start_updates = epoch * 10;
  event.metrics = metrics(0, 0, 0);
  return event;
}

engine::EpochEvent epoch_row(int64_t epoch) {
  engine::EpochEvent event;
  event.epoch = epoch;
  event.updates = 10 * (epoch + 1);
  event.images = 160;
  event.train_loss = 0.5;
  event.learning_rate = 0.1;
  event.has_eval = true;
  event.eval_loss = 0.25;
  event.metrics = metrics(90, 99, 0.75);
  event.is_best = true;
  return event;
}

class RunFilesTest : public ::testing::Test {
 protected:
  std::string summary() { return core::read_file(folder_ / "summary.csv", 1 << 20); }
  const stoker::fixtures::TemporaryDirectory folder_;
};

TEST_F(RunFilesTest, ARowHasTimmsColumnsFirst) {
  RunFiles files(folder_.path());
  files.on_start(start_at(0));
  files.on_epoch(epoch_row(0));
  std::istringstream lines(summary());
  std::string header, row;
  std::getline(lines, header);
  std::getline(lines, row);
  EXPECT_EQ(header.rfind("epoch,train_loss,eval_loss,eval_top1,eval_top5,lr,", 0), 0u);
  EXPECT_EQ(row.rfind("0,0.500000,0.250000,90.000000,99.000000,0.1,10,160,1,0,", 0), 0u) << row;
  EXPECT_EQ(header.substr(header.rfind(',')), ",eval_f1");
  EXPECT_EQ(row.substr(row.rfind(',')), ",0.750000");
  EXPECT_EQ(std::count(header.begin(), header.end(), ','), std::count(row.begin(), row.end(), ','));
}

TEST_F(RunFilesTest, WhatWasNotMeasuredIsEmpty) {
  RunFiles files(folder_.path());
  files.on_start(start_at(0));
  engine::EpochEvent undefined = epoch_row(0), skipped = epoch_row(1);
  undefined.metrics[1].value = std::nan("");
  skipped.has_eval = false;
  skipped.metrics.clear();
  files.on_epoch(undefined);
  files.on_epoch(skipped);
  std::istringstream lines(summary());
  std::string header, first, second;
  std::getline(lines, header);
  std::getline(lines, first);
  std::getline(lines, second);
  EXPECT_EQ(first.rfind("0,0.500000,0.250000,90.000000,,0.1,", 0), 0u) << first;
  EXPECT_EQ(second.rfind("1,0.500000,,,,0.1,", 0), 0u) << second;
  EXPECT_EQ(std::count(header.begin(), header.end(), ','), std::count(second.begin(), second.end(), ','));
}

TEST_F(RunFilesTest, AResumeCutsRowsThatWillBeWrittenAgainAndKeepsOneHeader) {
  {
    RunFiles files(folder_.path());
    files.on_start(start_at(0));
    for (int64_t epoch = 0; epoch < 4; ++epoch) files.on_epoch(epoch_row(epoch));
  }
  RunFiles files(folder_.path());
  files.on_start(start_at(2));
  files.on_epoch(epoch_row(2));
  const std::string text = summary();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4) << text;
  EXPECT_EQ(text.find("epoch,"), text.rfind("epoch,"));
}

TEST_F(RunFilesTest, AHalfWrittenLastRowIsDropped) {
  EXPECT_EQ(summary_until("epoch,x\n0,0.5,\n1,0.4", "epoch,x", 5), "epoch,x\n0,0.5,\n");
  EXPECT_EQ(summary_until("", "epoch,x", 5), "epoch,x\n");
}

TEST_F(RunFilesTest, EveryLineOfTheMetricsFileIsOneJsonObject) {
  RunFiles files(folder_.path());
  files.on_start(start_at(0));
  engine::ReportEvent report;
  report.train_loss = 0.0 / 0.0;
  files.on_report(report);
  files.on_epoch(epoch_row(0));
  files.on_finish({});
  std::istringstream lines(core::read_file(folder_ / "metrics.jsonl", 1 << 20));
  std::vector<std::string> events;
  for (std::string line; std::getline(lines, line);) events.push_back(core::parse_json(line, "line").at("event"));
  EXPECT_EQ(events, (std::vector<std::string>{"start", "report", "epoch", "finish"}));
}

TEST_F(RunFilesTest, TheStatusSaysHowTheRunStands) {
  RunFiles files(folder_.path());
  files.on_start(start_at(0));
  const auto state = [&] { return core::parse_json(core::read_file(folder_ / "status.json", 9999), "s").at("state"); };
  EXPECT_EQ(state(), "training");
  engine::FinishEvent finish;
  finish.reason = engine::StopReason::signal;
  finish.signal_name = "TERM";
  files.on_finish(finish);
  EXPECT_EQ(state(), "stopped");
}

TEST_F(RunFilesTest, ALostRowIsAnInputOutputError) {
  RunFiles files(folder_.path());
  files.on_start(start_at(0));
  std::filesystem::remove(folder_ / "summary.csv");
  std::filesystem::create_directory(folder_ / "summary.csv");
  try {
    files.on_epoch(epoch_row(0));
    FAIL();
  } catch (const core::Error& error) {
    EXPECT_EQ(error.kind(), core::ErrorKind::io);
  }
}

}  // namespace
}  // namespace stoker::observe
