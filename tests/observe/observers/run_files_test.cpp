// SPDX-License-Identifier: Apache-2.0
#include "observe/observers/run_files.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cmath>
#include <memory>
#include <set>
#include <sstream>

#include "core/crash/crash_file.h"
#include "core/error.h"
#include "core/system/file.h"
#include "tests/faulty_file_system.h"
#include "tests/lines_of.h"
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

TEST_F(RunFilesTest, DigestsOfAnUpdateAreALineOfTheirOwn) {
  RunFiles files(folder_.path());
  files.on_start(start_at(0));
  files.on_digest({/*epoch=*/1, /*updates=*/200, "aa", "bb"});
  const std::string text = core::read_file(folder_ / "metrics.jsonl", 1 << 20);
  const core::Json line = core::Json::parse(text.substr(text.find('\n') + 1));
  EXPECT_EQ(line.at("event"), "digest");
  EXPECT_EQ(line.at("epoch"), 2) << "epochs count from 1";
  EXPECT_EQ(line.at("updates"), 200);
  EXPECT_EQ(line.at("weights"), "aa");
  EXPECT_EQ(line.at("images"), "bb");
}

TEST_F(RunFilesTest, EveryFieldIsInTheReferenceOfTheRunDirectory) {
  RunFiles files(folder_.path());
  files.on_start(start_at(0));
  engine::ReportEvent report;
  report.train_score = metrics(90, 99, 0.75).front();
  engine::EpochEvent epoch = epoch_row(0);
  report.found.resources.emplace();
  epoch.found.resources.emplace();
  files.on_report(report);
  files.on_digest({});
  files.on_epoch(epoch);
  files.on_checkpoint({});
  files.on_finish({});
  std::set<std::string> names;
  std::istringstream lines(core::read_file(folder_ / "metrics.jsonl", 1 << 20)), columns(summary());
  for (std::string line; std::getline(lines, line);) {
    const core::Json parsed = core::Json::parse(line);
    for (const auto& [name, value] : parsed.items()) {
      names.insert(name);
      if (!value.is_object()) continue;
      for (const auto& inner : value.items()) names.insert(inner.key());
    }
  }
  std::string header;
  std::getline(columns, header);
  std::istringstream cells(header);
  for (std::string cell; std::getline(cells, cell, ',');) names.insert(cell);
  const std::string page = core::read_file(STOKER_SOURCE_DIR "/docs/reference/run-directory.md", 1 << 20);
  for (const std::string& name : names) {
    const bool is_metric = name == "eval_f1";  // of a task, which has a page of its own
    EXPECT_TRUE(is_metric || page.find("`" + name + "`") != std::string::npos) << name;
  }
}

TEST_F(RunFilesTest, ARowHasTimmsColumnsFirst) {
  RunFiles files(folder_.path());
  files.on_start(start_at(0));
  files.on_epoch(epoch_row(0));
  std::istringstream lines(summary());
  std::string header, row;
  std::getline(lines, header);
  std::getline(lines, row);
  EXPECT_EQ(header.rfind("epoch,train_loss,eval_loss,eval_top1,eval_top5,lr,", 0), 0u);
  EXPECT_EQ(row.rfind("1,0.500000,0.250000,90.000000,99.000000,0.1,10,160,1,0,", 0), 0u) << row;
  EXPECT_EQ(header.substr(header.rfind(',')), ",eval_f1");
  EXPECT_EQ(row.substr(row.rfind(',')), ",0.750000");
  EXPECT_EQ(std::count(header.begin(), header.end(), ','), std::count(row.begin(), row.end(), ','));
}

TEST_F(RunFilesTest, TimesOfSeveralRanksStandSideBySide) {
  RunFiles files(folder_.path());
  files.on_start(start_at(0));
  engine::EpochEvent event = epoch_row(0);
  event.ranks = {{"a", 0.1, 0, 0.04, 0.06, 0.01}, {"b", 0.1, 0.02, 0.01, 0.09, 0.01}};
  files.on_epoch(event);
  files.on_epoch(epoch_row(1));
  EXPECT_NE(summary().find(",exchange_share,eval_f1\n"), std::string::npos);
  EXPECT_NE(summary().find(",0.1000,0.750000\n"), std::string::npos) << summary();
  EXPECT_NE(summary().find(",0.0000,0.750000\n"), std::string::npos) << "alone";
  std::istringstream lines(core::read_file(folder_ / "metrics.jsonl", 1 << 20));
  std::string line;
  for (int i = 0; i < 2; ++i) std::getline(lines, line);
  const core::Json ranks = core::parse_json(line, "metrics.jsonl").at("ranks");
  EXPECT_DOUBLE_EQ(ranks.at("exchange_share"), 0.1);
  EXPECT_EQ(ranks.at("slowest"), 1);
  EXPECT_NEAR(ranks.at("slowest_excess"), 0.5, 1e-9);
  EXPECT_EQ(ranks.at("each").at(1).at("host"), "b");
  EXPECT_DOUBLE_EQ(ranks.at("each").at(1).at("wait_seconds"), 0.02);
  std::getline(lines, line);
  EXPECT_TRUE(core::parse_json(line, "metrics.jsonl").at("ranks").is_null());
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
  EXPECT_EQ(first.rfind("1,0.500000,0.250000,90.000000,,0.1,", 0), 0u) << first;
  EXPECT_EQ(second.rfind("2,0.500000,,,,0.1,", 0), 0u) << second;
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

TEST_F(RunFilesTest, RowsOfAnOlderProgramKeepTheirNames) {
  core::write_file_atomically(folder_ / "summary.csv",
                              "epoch,train_loss,lr,old\n1,0.7,0.1,x\n2,0.6,0.2,y\n3,0.5,0.3,z\n",
                              /*durable=*/false);
  RunFiles files(folder_.path());
  files.on_start(start_at(2));
  files.on_epoch(epoch_row(2));
  std::istringstream lines(summary());
  std::vector<std::string> rows;
  for (std::string line; std::getline(lines, line);) rows.push_back(line);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0], summary_header(metrics(0, 0, 0)) + ",old");
  EXPECT_EQ(rows[1].rfind("1,0.7,,,,0.1,", 0), 0u) << rows[1];
  EXPECT_EQ(rows[2].substr(rows[2].rfind(',')), ",y");
  EXPECT_EQ(rows[3].rfind("3,0.500000,0.250000,90.000000,99.000000,0.1,", 0), 0u) << rows[3];
  for (const std::string& row : rows) {
    EXPECT_EQ(std::count(row.begin(), row.end(), ','), std::count(rows[0].begin(), rows[0].end(), ',')) << row;
  }
}

TEST_F(RunFilesTest, AHalfWrittenLastRowIsDropped) {
  EXPECT_EQ(summary_until("epoch,x\n1,0.5,\n2,0.4", "epoch,x", 5), "epoch,x\n1,0.5\n");
  EXPECT_EQ(summary_until("", "epoch,x", 5), "epoch,x\n");
}

TEST_F(RunFilesTest, RowsInsideAnEpochStayAsFarAsTheCheckpointHasThem) {
  const std::string header = "epoch,updates\n", all = header + "1,5\n1,10\n1,13\n2,15\n2,20\n";
  EXPECT_EQ(summary_until(all, "epoch,updates", 1, 15), header + "1,5\n1,10\n1,13\n2,15\n");
  EXPECT_EQ(summary_until(all, "epoch,updates", 0, 5), header + "1,5\n");
  EXPECT_EQ(summary_until(all, "epoch,updates", 1, 13), header + "1,5\n1,10\n1,13\n");
}

TEST_F(RunFilesTest, AnEvaluationThatOnlyAStopCausedLeavesItsRow) {
  const std::string header = "epoch,eval_loss,updates,best,eval_seconds,eval_top1\n", due = "2,0.4,30,1,0.2,60\n",
                    stopped = "3,0.3,45,1,0.2,70\n";
  EXPECT_EQ(summary_until(header + due + stopped, "epoch,eval_loss,updates,best,eval_seconds,eval_top1", 3, 30),
            header + due + "3,,45,0,0.2,\n");
  EXPECT_EQ(summary_until(header + due + stopped, "epoch,eval_loss,updates,best,eval_seconds,eval_top1", 3, 45),
            header + due + stopped);
}

TEST_F(RunFilesTest, RowsStayWhereverTheirEpochStandsAndHoweverTheyAreQuoted) {
  EXPECT_EQ(summary_until("updates,old,epoch\n15,77,1\n30,78,2\n45,79,3\n", "epoch,updates", 2),
            "epoch,updates,old\n1,15,77\n2,30,78\n");
  EXPECT_EQ(summary_until("\"epoch\",\"note\"\n\"1\",\"a, \"\"b\"\"\"\n", "epoch,x", 1),
            "epoch,x,note\n1,,\"a, \"\"b\"\"\"\n");
}

TEST_F(RunFilesTest, RowsStayUnderTheirNamesHoweverAnotherProgramWroteThem) {
  const std::string ours = "epoch,updates,note\n1,15,a\n2,30,b\n";
  const auto rewritten = [](const std::string& text) { return summary_until(text, "epoch,updates,note", 9); };
  EXPECT_EQ(rewritten("Epoch,Updates,Note\n1,15,a\n2,30,b\n"), ours) << "capitals";
  EXPECT_EQ(rewritten("epoch,updates,note,\n1,15,a,\n2,30,b,\n"), ours) << "a comma behind each row";
  EXPECT_EQ(rewritten("epoch;updates;note\n1;15;a\n2;30;b\n"), ours) << "semicolons";
  EXPECT_EQ(rewritten("epoch,updates,note\n1.0,15,a\n2.0,30,b\n"), ours) << "whole numbers with a point";
  EXPECT_EQ(rewritten("epoch,note,updates\n1,\"a\nb\",15\n"), "epoch,updates,note\n1,15,\"a\nb\"\n");
  EXPECT_EQ(rewritten("epoch,updates,note\n1,15,\"a\n2,30,b\nx,45,c\n"), "epoch,updates,note\n2,30,b\n")
      << "an open quote costs its own row";
}

TEST_F(RunFilesTest, AnEvaluationInsideAnEpochHasARowWithoutClocksOfTraining) {
  RunFiles files(folder_.path());
  files.on_start(start_at(0));
  engine::EpochEvent inside = epoch_row(0);
  inside.is_inside = true;
  files.on_epoch(inside);
  const std::string row = summary().substr(summary().find('\n') + 1);
  EXPECT_EQ(row.rfind("1,0.500000,0.250000,90.000000,99.000000,0.1,", 0), 0u) << row;
  EXPECT_NE(row.find(",,,,,,,"), std::string::npos) << row;
  EXPECT_NE(core::read_file(folder_ / "metrics.jsonl", 1 << 20).find(R"("event":"evaluation")"), std::string::npos);
}

TEST_F(RunFilesTest, ASummaryThatCountsFromZeroGoesOnCountingFromOne) {
  EXPECT_EQ(summary_until("epoch,x\n0,a\n1,b\n2,c\n", "epoch,x", 2), "epoch,x\n1,a\n2,b\n");
  EXPECT_EQ(summary_until("epoch,x\n1,a\n2,b\n3,c\n", "epoch,x", 2), "epoch,x\n1,a\n2,b\n");
}

TEST_F(RunFilesTest, EveryFileCallsTheFirstEpochOne) {
  RunFiles files(folder_.path());
  files.on_start(start_at(0));
  files.on_report({});
  files.on_epoch(epoch_row(0));
  std::istringstream lines(core::read_file(folder_ / "metrics.jsonl", 1 << 20));
  for (std::string line; std::getline(lines, line);) EXPECT_EQ(core::parse_json(line, "line").at("epoch"), 1) << line;
  engine::FinishEvent finish;
  finish.best_epoch = 0;
  files.on_finish(finish);
  EXPECT_EQ(core::parse_json(core::read_file(folder_ / "status.json", 9999), "s").at("best_epoch"), 1);
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

TEST_F(RunFilesTest, TheStatusHasTheStateOfTheRun) {
  RunFiles files(folder_.path());
  files.on_start(start_at(0));
  const auto state = [&] { return core::parse_json(core::read_file(folder_ / "status.json", 9999), "s").at("state"); };
  EXPECT_EQ(state(), "training");
  engine::FinishEvent finish;
  finish.reason = engine::StopReason::signal;
  finish.signal_name = "TERM";
  files.on_finish(finish);
  EXPECT_EQ(state(), "stopped");
  finish.reason = engine::StopReason::max_time;
  files.on_finish(finish);
  EXPECT_EQ(state(), "stopped") << "the same command continues";
  finish.reason = engine::StopReason::no_improvement;
  files.on_finish(finish);
  EXPECT_EQ(state(), "finished");
}

TEST_F(RunFilesTest, WhatACrashLeavesIsReadyWhileItTrains) {
  RunFiles files(folder_.path());
  files.on_start(start_at(0));
  const std::unique_ptr<const core::CrashFile> file(core::take_crash_file());
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(file->path, folder_ / "status.json");
  const core::Json crashed = core::parse_json(file->begin + ", \"reason\": \"crash:FPE\"}", "s");
  EXPECT_EQ(crashed.at("state"), "failed");
  EXPECT_EQ(crashed.at("epoch"), 1);
  EXPECT_FALSE(crashed.contains("time")) << "known when it crashes";
  files.on_report(engine::ReportEvent());
  files.on_finish(engine::FinishEvent());
  EXPECT_EQ(core::take_crash_file(), nullptr) << "it has ended: another end changes nothing";
}

TEST_F(RunFilesTest, AResumeNeverGluesAnEventToHalfALine) {
  const std::string whole = R"({"event":"start"})"
                            "\n";
  folder_.write("metrics.jsonl", whole + R"({"event":"rep)");
  folder_.write("summary.csv", "");
  {
    RunFiles files(folder_.path());
    files.on_start(start_at(1));
  }
  const std::string text = core::read_file(folder_ / "metrics.jsonl", 1 << 20);
  EXPECT_EQ(text.rfind(whole + R"({"event":"resume",)", 0), 0u) << text;
  for (const std::string& line : lines_of(text)) EXPECT_NO_THROW(core::parse_json(line, "a line")) << line;
}

TEST_F(RunFilesTest, AFailedWriteIsAnInputOutputErrorAndLeavesWholeLines) {
  const auto write_all = [](const std::string& folder, core::FileSystem& file_system) {
    RunFiles files(folder, file_system);
    files.on_start(start_at(0));
    files.on_report({});
    files.on_epoch(epoch_row(0));
    files.on_finish({});
  };
  const int64_t calls = [&] {
    const stoker::fixtures::TemporaryDirectory folder;
    stoker::fixtures::FaultyFileSystem faulty(folder.path());
    write_all(folder.path(), faulty);
    return faulty.calls();
  }();
  for (const int error_number : {ENOSPC, EIO, EDQUOT}) {
    for (int64_t call = 1; call <= calls; ++call) {
      SCOPED_TRACE("errno " + std::to_string(error_number) + " at call " + std::to_string(call));
      const stoker::fixtures::TemporaryDirectory folder;
      stoker::fixtures::FaultyFileSystem faulty(folder.path());
      faulty.fail_call(call, error_number);
      try {
        write_all(folder.path(), faulty);
      } catch (const core::Error& error) {
        EXPECT_EQ(error.kind(), core::ErrorKind::io) << error.what();
      }
      RunFiles resumed(folder.path());
      resumed.on_start(start_at(1));
      for (const std::string& line : lines_of(core::read_file(folder / "metrics.jsonl", 1 << 20))) {
        EXPECT_NO_THROW(core::parse_json(line, "a line")) << line;
      }
      const auto rows = lines_of(core::read_file(folder / "summary.csv", 1 << 20));
      for (const std::string& row : rows) {
        EXPECT_EQ(std::count(row.begin(), row.end(), ','), std::count(rows[0].begin(), rows[0].end(), ',')) << row;
      }
    }
  }
}

TEST_F(RunFilesTest, AnEpochsRowSurvivesAPowerLoss) {
  stoker::fixtures::FaultyFileSystem faulty(folder_.path());
  RunFiles files(folder_.path(), faulty);
  files.on_start(start_at(0));
  files.on_epoch(epoch_row(0));
  faulty.cut_power_after(faulty.calls());
  faulty.restart(stoker::fixtures::Unsynced::lost);
  EXPECT_EQ(lines_of(summary()).size(), 2u);
}

TEST_F(RunFilesTest, TheStatusOfARunThatEndsWithAnErrorIsFailed) {
  const auto state = [&] { return core::parse_json(core::read_file(folder_ / "status.json", 9999), "s").at("state"); };
  {
    RunFiles files(folder_.path());
    files.on_start(start_at(0));
  }
  EXPECT_EQ(state(), "failed");
  {
    RunFiles files(folder_.path());
    files.on_start(start_at(0));
    files.on_finish({});
  }
  EXPECT_EQ(state(), "finished");
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
