// SPDX-License-Identifier: Apache-2.0
// A run that continues after its end, starts over, continues elsewhere, or is one of many.
#include <gtest/gtest.h>

#include <filesystem>

#include "exit_codes.h"
#include "finished_run.h"

namespace stoker::cli {
namespace {

namespace fs = std::filesystem;

Ended finish(const Workplace& work, const Words& words) {
  Ended ended = run(words, work.path());
  EXPECT_EQ(ended.exit_code, 0) << story_of(words, ended);
  return ended;
}

std::vector<std::string> summary_of(const Workplace& work, const std::string& run_dir) {
  return lines_of(content_of_file(work / (run_dir + "/summary.csv")));
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(ContinuedRunTest, AFinishedRunTrainsFurtherWhenEpochsIsRaised) {
  const Workplace work;
  place_finished_run(work);
  const Ended ended = finish(work, finished_run_words({"--epochs", "4"}));
  EXPECT_TRUE(contains(ended.out, "extends the run from 2 to 4 epochs")) << ended.out;
  const std::vector<std::string> rows = summary_of(work, "run");
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows.back().rfind("4,", 0), 0u);
  EXPECT_TRUE(contains(last_line(ended.err), "reason=epochs-done update=16 ")) << ended.err;
  EXPECT_TRUE(contains(last_line(finish(work, finished_run_words({"--epochs", "4"})).err), "reason=already-finished"));
}

TEST(ContinuedRunTest, ARunThatIsNotFinishedKeepsItsEpochs) {
  const Workplace work;
  place_finished_run(work);
  const Words words =
      finished_run_words({"--epochs", "4", "--resume", "run/checkpoints/step-00000004"});  // after one of two epochs
  const Ended ended = run(words, work.path());
  EXPECT_EQ(ended.exit_code, kConfig) << story_of(words, ended);
  EXPECT_TRUE(contains(ended.err, "--epochs: the checkpoint has 2, this run 4")) << ended.err;
}

TEST(ContinuedRunTest, FewerEpochsAndOtherOptionsAreNoExtension) {
  const Workplace work;
  place_finished_run(work);
  EXPECT_EQ(run(finished_run_words({"--epochs", "1"}), work.path()).exit_code, kConfig);
  const Ended ended = run(finished_run_words({"--epochs", "4", "--seed", "7"}), work.path());
  EXPECT_EQ(ended.exit_code, kConfig);
  EXPECT_TRUE(contains(ended.err, "--seed: ")) << ended.err;
  EXPECT_FALSE(contains(ended.err, "--epochs: ")) << ended.err;
}

TEST(ContinuedRunTest, FreshSetsTheOldRunAsideAndStartsOver) {
  const Workplace work;
  place_finished_run(work);
  const std::string before = content_of_file(work / "run/checkpoints/step-00000008/state.json");
  for (const std::string aside : {"run.old-1", "run.old-2"}) {
    const Ended ended = finish(work, finished_run_words({"--fresh", "--epochs", "1"}));
    EXPECT_TRUE(contains(ended.out, "the run in run was set aside as " + aside)) << ended.out;
    EXPECT_TRUE(contains(ended.out, "run, from scratch")) << ended.out;
    EXPECT_EQ(summary_of(work, "run").size(), 2u);
  }
  EXPECT_EQ(content_of_file(work / "run.old-1/checkpoints/step-00000008/state.json"), before);
  EXPECT_EQ(summary_of(work, "run.old-2").size(), 2u);
}

TEST(ContinuedRunTest, FreshWithoutAnOldRunStartsAsAlways) {
  const Workplace work;
  write_idx(work);
  finish(work, train_words({"--fresh"}));
  EXPECT_FALSE(fs::exists(work / "run.old-1"));
}

TEST(ContinuedRunTest, FreshAndResumeContradictEachOther) {
  const Workplace work;
  place_finished_run(work);
  EXPECT_EQ(run(finished_run_words({"--fresh", "--resume", "last"}), work.path()).exit_code, kUsage);
}

TEST(ContinuedRunTest, ACheckpointBringsTheOptionsAndTheDirectoryOfItsRun) {
  const Workplace work;
  place_finished_run(work);
  const Ended ended = finish(work, {"--resume", "run/checkpoints/step-00000004", "--num-workers", "0"});
  EXPECT_TRUE(contains(ended.out, "run, resumes run/checkpoints/step-00000004")) << ended.out;
  EXPECT_TRUE(contains(last_line(ended.err), "update=8 ")) << ended.err;
  EXPECT_EQ(summary_of(work, "run").size(), 3u);
}

TEST(ContinuedRunTest, InSpiteOfOtherOutputsTheNetworkIsTakenOverAndTheClassifierBeginsAtRandom) {
  const Workplace work;
  place_finished_run(work);
  const Words words = finished_run_words({"--num-classes", "12", "--epochs", "3"});
  EXPECT_EQ(run(words, work.path()).exit_code, kConfig);
  Words in_spite = words;
  in_spite.insert(in_spite.end(), {"--override-resume"});
  const Ended ended = finish(work, in_spite);
  EXPECT_TRUE(contains(ended.err, "--override-resume: the classifier has other outputs and begins at random: fc."))
      << ended.err;
  EXPECT_TRUE(contains(last_line(ended.err), "update=12 ")) << ended.err;
}

TEST(ContinuedRunTest, WhatPrintConfigShowsOfARunThatContinuesIsWhatIsTrained) {
  const Workplace work;
  place_finished_run(work);
  const auto value_of = [](const std::string& yaml, const std::string& key) {
    for (const std::string& line : lines_of(yaml)) {
      const size_t begin = line.find_first_not_of(' ');
      if (begin != std::string::npos && line.compare(begin, key.size(), key) == 0)
        return line.substr(begin, line.find('#') - begin);
    }
    return std::string();
  };
  Words words = finished_run_words({"--opt", "adamw", "--epochs", "3", "--override-resume"});
  const Ended trained = finish(work, words);
  EXPECT_TRUE(contains(trained.err, "--override-resume accepts: --opt: ")) << trained.err;
  EXPECT_TRUE(contains(trained.err, "--override-resume accepts: --lr: ")) << trained.err;
  const std::string config = content_of_file(work / "run/config.yaml");
  EXPECT_FALSE(contains(value_of(config, "lr: "), "0.00625")) << "that of sgd";
  for (const Words& rest : {Words{"--opt", "adamw"}, Words{}}) {  // what the run began with is kept, and shown
    Words shown = finished_run_words({"--epochs", "3", "--override-resume", "--print-config"});
    shown.insert(shown.end(), rest.begin(), rest.end());
    const std::string printed = finish(work, shown).out;
    for (const std::string key : {"opt: ", "lr: ", "sched: ", "batch-size: "}) {
      EXPECT_EQ(value_of(printed, key), value_of(config, key)) << key << printed;
    }
  }
}

TEST(ContinuedRunTest, WhereTheBestCheckpointIsGoneTheBestThatIsLeftTakesItsPlace) {
  const Workplace work;
  place_finished_run(work);
  fs::remove(work / "run/checkpoints/best");
  fs::create_symlink("step-00000002", work / "run/checkpoints/best");  // pruned since, for example
  const Ended dangling = finish(work, {"eval", "run"});
  EXPECT_TRUE(contains(dangling.out + dangling.err,
                       "run has no best checkpoint: taking run/checkpoints/step-00000008, the best"))
      << dangling.err;
  const Ended start = finish(work, finished_run_words({"--init-from", "run", "--run-dir", "next", "--epochs", "1"}));
  const std::string printed = start.out + start.err, note = "run has no best checkpoint";
  EXPECT_NE(printed.find(note), std::string::npos) << printed;
  EXPECT_EQ(printed.find(note), printed.rfind(note)) << "once: " << printed;
  finish(work, finished_run_words({"--resume", "run/checkpoints/step-00000004", "--max-updates", "5"}));
  EXPECT_TRUE(fs::exists(work / "run/checkpoints/best/manifest.json"));
  finish(work, {"eval", "run"});
}

TEST(ContinuedRunTest, ACheckpointBeforeTheCoolDownBranchesOffToTheWeightsOfARunOfItsOwn) {
  const Workplace work;
  write_idx(work);
  const auto words = [](const Words& more) {
    Words all = train_words({"--epochs", "4", "--keep-every", "1e", "--keep-last", "1"});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const Words cooled = {"--sched", "wsd", "--epochs", "3", "--cooldown", "1", "--min-lr", "0.001"};
  finish(work, words({"--sched", "constant"}));
  finish(work, words({"--sched", "wsd", "--run-dir", "long"}));
  Words whole = words(cooled);
  whole.insert(whole.end(), {"--run-dir", "whole"});
  finish(work, whole);
  const std::string wanted = content_of_file(work / "whole/checkpoints/last/model.safetensors");
  for (const std::string from : {"run", "long"}) {
    Words branch = words(cooled);
    branch.insert(branch.end(), {"--run-dir", "from-" + from, "--resume", from + "/checkpoints/step-00000008"});
    finish(work, branch);
    EXPECT_TRUE(content_of_file(work / ("from-" + from + "/checkpoints/last/model.safetensors")) == wanted) << from;
  }
  Words late = words(cooled);
  late.insert(late.end(), {"--run-dir", "late", "--resume", "run/checkpoints/step-00000012"});
  EXPECT_EQ(run(late, work.path()).exit_code, kConfig) << "this run cools down before";
  late = words({"--sched", "wsd", "--epochs", "8", "--run-dir", "late", "--resume", "whole/checkpoints/step-00000012"});
  EXPECT_EQ(run(late, work.path()).exit_code, 0) << "a finished run is extended";
}

TEST(ContinuedRunTest, WithoutValidationDataARunSavesItsLastAndNamesTheRest) {
  const Workplace work;
  write_idx(work);
  fs::remove(work / "data/t10k-images-idx3-ubyte");
  const Ended ended = finish(work, train_words({"--val-split", "none", "--average-last", "2", "--save-every", "2u"}));
  EXPECT_TRUE(contains(ended.out, "and 0 validation images")) << ended.out;
  EXPECT_TRUE(contains(ended.out, "validation: none")) << ended.out;
  EXPECT_TRUE(contains(ended.out, "best      not known")) << ended.out;
  EXPECT_TRUE(contains(ended.out, "average   not evaluated of the last 2 checkpoints")) << ended.out;
  EXPECT_FALSE(contains(last_line(ended.err), "metric=")) << ended.err;
  EXPECT_TRUE(fs::exists(work / "run/checkpoints/last/manifest.json"));
  EXPECT_FALSE(fs::exists(work / "run/checkpoints/best"));
  finish(work, {"eval", "run/checkpoints/average", "data", "--split", "train"});
  EXPECT_EQ(run(train_words({"--val-split", "none", "--patience", "2"}), work.path()).exit_code, kConfig);
}

TEST(ContinuedRunTest, AStopInsideAnEpochUsesUpNoPatience) {
  const Workplace work;
  place_finished_run(work);
  for (const std::string limit : {"9", "10", "11"}) {
    const Ended ended = finish(work, finished_run_words({"--epochs", "4", "--patience", "2", "--max-updates", limit}));
    EXPECT_TRUE(contains(ended.out, "epoch 3/4 stopped at update ")) << ended.out;
    EXPECT_TRUE(contains(last_line(ended.err), "reason=max-updates update=" + limit)) << ended.err;
  }
}

TEST(ContinuedRunTest, ARunGoesOnWithoutTheRunThatItsWeightsCameFrom) {
  const Workplace work;
  place_finished_run(work);
  finish(work, finished_run_words({"--mean", "0.4", "--std", "0.3", "--run-dir", "start"}));
  const Words words = finished_run_words({"--init-from", "start", "--run-dir", "next"});
  finish(work, finished_run_words({"--init-from", "start", "--run-dir", "next", "--max-updates", "3"}));
  fs::remove_all(work / "start");
  EXPECT_TRUE(contains(last_line(finish(work, words).err), "reason=epochs-done"));
}

TEST(ContinuedRunTest, ExportedWeightsBringTheNormalisationThatTheyWereTrainedWith) {
  const Workplace work;
  place_finished_run(work);
  finish(work, finished_run_words({"--mean", "0.4", "--std", "0.3", "--run-dir", "start"}));
  finish(work, {"export", "start", "-o", "w.safetensors"});
  const Ended next = finish(work, finished_run_words({"--init-from", "w.safetensors", "--run-dir", "next"}));
  EXPECT_FALSE(contains(next.err, "normalises otherwise")) << next.err;
  const std::string record = content_of_file(work / "next/checkpoints/last/preprocess.json");
  EXPECT_TRUE(contains(record, "0.4") && contains(record, "0.3")) << record;
}

TEST(ContinuedRunTest, AFractionTrainsOnAShareAndAnotherOneIsRefused) {
  const Workplace work;
  write_idx(work);
  const Ended half = finish(work, train_words({"--fraction", "0.5"}));
  EXPECT_TRUE(contains(half.out, "images by --fraction 0.5")) << half.out;
  const Ended other = run(train_words({"--fraction", "0.25", "--epochs", "3"}), work.path());
  EXPECT_EQ(other.exit_code, kConfig) << other.err;
  EXPECT_TRUE(contains(other.err, "fraction")) << other.err;
}

TEST(ContinuedRunTest, FlagsWinOverTheOptionsOfTheCheckpoint) {
  const Workplace work;
  place_finished_run(work);
  const Ended ended = run({"--resume", "run", "--epochs", "3", "--run-dir", "other", "--seed", "7"}, work.path());
  EXPECT_EQ(ended.exit_code, kConfig) << ended.err;
  EXPECT_TRUE(contains(ended.err, "--seed: the checkpoint has 42, this run 7")) << ended.err;
  finish(work, {"--resume", "run", "--epochs", "3", "--run-dir", "other"});
  EXPECT_EQ(summary_of(work, "other").size(), 2u);
  EXPECT_EQ(summary_of(work, "run").size(), 3u);
}

TEST(ContinuedRunTest, RunsOfASweepAreNamedByTheirOptionsAndNumbered) {
  const Workplace work;
  write_idx(work);
  for (int i = 0; i < 2; ++i) finish(work, train_words({"--lr", "0.01", "--run-dir", "sweep/lr-{lr}-{n}"}));
  EXPECT_TRUE(fs::exists(work / "sweep/lr-0.01-1/summary.csv"));
  EXPECT_TRUE(fs::exists(work / "sweep/lr-0.01-2/summary.csv"));
  const Words named = train_words({"--lr", "0.02", "--run-dir", "sweep/lr-{lr}"});
  finish(work, named);
  EXPECT_TRUE(contains(last_line(finish(work, named).err), "reason=already-finished")) << "no number: the same run";
  const Ended unknown = run(train_words({"--run-dir", "sweep/{lrr}"}), work.path());
  EXPECT_EQ(unknown.exit_code, kUsage);
  EXPECT_TRUE(contains(unknown.err, "\"{lrr}\" names no option")) << unknown.err;
}

TEST(ContinuedRunTest, TheLastLineHasTheMetricAndItsBestValue) {
  const Workplace work;
  place_finished_run(work);
  double best = 0;
  for (const std::string& row : summary_of(work, "run")) {
    std::string cell = row;
    for (int i = 0; i < 3; ++i) cell = cell.substr(cell.find(',') + 1);
    best = std::max(best, std::atof(cell.c_str()));
  }
  const std::string line = last_line(finish(work, finished_run_words()).err);
  const size_t place = line.find(" metric=top1 value=");
  ASSERT_NE(place, std::string::npos) << line;
  EXPECT_NEAR(std::atof(line.c_str() + place + 19), best, 0.001) << line;
  EXPECT_LT(place, line.find(" checkpoint=")) << "a path, which may hold spaces, comes last";
  EXPECT_TRUE(contains(last_line(finish(work, {"eval", "run"}).err), " metric=top1 value="));
}

}  // namespace
}  // namespace stoker::cli
