// SPDX-License-Identifier: Apache-2.0
// The predicted memory of a run, printed before it begins, and the choices that depend on it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tiny_data.h"

namespace stoker::cli {
namespace {

namespace fs = std::filesystem;

Words plan_words(const Words& more) {
  Words words = train_words(more);
  words.insert(words.begin(), "plan");
  return words;
}

/// The first number behind `key`; -1 where there is none.
double number_behind(const std::string& text, const std::string& key) {
  const size_t at = text.find(key);
  return at == std::string::npos ? -1 : std::atof(text.c_str() + at + key.size());
}

TEST(PlanTest, PrintsWhatARunTakesAndBeginsNone) {
  const Workplace work;
  write_idx(work);
  const Words words = plan_words({"--json"});
  const Ended ended = run(words, work.path());
  SCOPED_TRACE(story_of(words, ended));
  ASSERT_EQ(ended.exit_code, 0);
  EXPECT_EQ(last_line(ended.err), "train: exit=0 reason=planned");
  for (const char* const part : {"\"fits\": true", "\"name\": \"batch buffers\"", "\"name\": \"activations\"",
                                 "\"name\": \"weights\"", "\"fits_with\": null", "\"device\": null"}) {
    EXPECT_NE(ended.out.find(part), std::string::npos) << part;
  }
  EXPECT_GT(number_behind(ended.out, "\"epoch_seconds\": "), 0);
  EXPECT_GT(number_behind(ended.out, "\"checkpoint_bytes\": "), 0);
  EXPECT_FALSE(fs::exists(work / "run"));
}

TEST(PlanTest, WhatIsKnownIsPrintedBeforeAnythingIsProvenOrTried) {
  const Workplace work;
  write_idx(work);
  Launch launch;
  launch.words = plan_words({"-v"});
  launch.directory = work.path();
  const Ended ended = run(launch);
  SCOPED_TRACE(story_of(launch.words, ended));
  ASSERT_EQ(ended.exit_code, 0);
  const size_t tried = ended.out.find("memory of activations: tried");
  for (const char* const known : {"model     ", " parameters\n", "memory    host ", "disk      checkpoints of "}) {
    EXPECT_LT(ended.out.find(known), tried) << known;
  }
}

TEST(PlanTest, ARunKeepsWhatWasPredictedAndWhatWasSeen) {
  const Workplace work;
  write_idx(work);
  Launch launch;
  launch.words = train_words();
  launch.directory = work.path();
  const Ended ended = run(launch);
  ASSERT_EQ(ended.exit_code, 0) << story_of(launch.words, ended);
  EXPECT_NE(ended.out.find("memory    host "), std::string::npos) << ended.out;
  const std::string plan = content_of_file(work / "run/plan.json");
  const double predicted = number_behind(plan, "\"bytes\": "), observed = number_behind(plan, "\"host_bytes\": ");
  EXPECT_NEAR(predicted / observed, 1, 0.15) << plan;
}

TEST(PlanTest, WhatCannotFitIsRefusedBeforeTheRunWithEachPart) {
  const Workplace work;
  write_idx(work);
  const Words words = plan_words({"--img-size", "8192", "--batch-size", "64"});
  const Ended ended = run(words, work.path());
  SCOPED_TRACE(story_of(words, ended));
  EXPECT_EQ(ended.exit_code, 81);
  EXPECT_FALSE(ended.timed_out);
  EXPECT_NE(ended.out.find("host      batch buffers"), std::string::npos);
  EXPECT_NE(ended.err.find("error: the run would take "), std::string::npos);
  EXPECT_EQ(ended.out.find("time "), std::string::npos) << "nothing is timed that cannot run";
  Words as_json = words;
  as_json.push_back("--json");
  const Ended refused = run(as_json, work.path());
  EXPECT_EQ(refused.exit_code, 81) << story_of(as_json, refused);
  for (const char* const part : {"\"fits\": false", "\"reason\": \"the run would take "}) {
    EXPECT_NE(refused.out.find(part), std::string::npos) << part << refused.out;
  }
  EXPECT_EQ(refused.out.front(), '{') << "one object";
}

TEST(PlanTest, ABatchThatIsFarTooLargeIsRefusedInSecondsBehindWhatIsKnown) {
  const Workplace work;
  write_idx(work);
  const Words words = train_words({"--model", "resnet152", "--img-size", "4096", "--batch-size", "64"});
  const Ended ended = run(words, work.path());
  SCOPED_TRACE(story_of(words, ended));
  EXPECT_EQ(ended.exit_code, 81);
  EXPECT_LT(ended.wall_seconds, 100) << "proofs and measurements of this network take minutes";
  const size_t known = ended.out.find("data      64 training"), tried = ended.out.find("a batch of 64 is first tried");
  EXPECT_TRUE(known < tried && tried < ended.out.find("host      batch buffers"));
  EXPECT_EQ(ended.out.find("backend   "), std::string::npos) << "nothing is proven that cannot run";
  EXPECT_FALSE(fs::exists(work / "run/checkpoints/last"));
}

TEST(PlanTest, APlanThatIsRefusedEarlyIsStillAnObject) {
  const Workplace work;
  write_idx(work);
  const Words words = plan_words({"--json", "--val-split", "nowhere"});
  const Ended ended = run(words, work.path());
  SCOPED_TRACE(story_of(words, ended));
  EXPECT_NE(ended.exit_code, 0);
  for (const char* const part : {"{\n \"fits\": null", "\"hint\": ", "\"reason\": ", "nowhere"}) {
    EXPECT_NE(ended.out.find(part), std::string::npos) << part;
  }
}

TEST(PlanTest, AnAutomaticBatchIsChosenOnceAndKeptOnResume) {
  const Workplace work;
  write_idx(work);
  Words words = train_words({"--batch-size", "auto", "--max-updates", "4"});
  Ended ended = run(words, work.path());
  ASSERT_EQ(ended.exit_code, 0) << story_of(words, ended);
  const std::string first = content_of_file(work / "run/config.yaml");
  EXPECT_NE(first.find("batch-size: 8 "), std::string::npos) << "64 images, and 8 updates in an epoch at least\n"
                                                             << first;
  EXPECT_NE(first.find("\n  lr: 0.003125 "), std::string::npos) << "scaled from the batch that was chosen\n" << first;
  words = train_words({"--batch-size", "auto", "-v"});
  ended = run(words, work.path());
  ASSERT_EQ(ended.exit_code, 0) << story_of(words, ended);
  EXPECT_NE(ended.out.find("chosen    --batch-size 8: as in the checkpoint"), std::string::npos) << ended.out;
}

TEST(PlanTest, ProcessesAgreeOnAnAutomaticBatch) {
  const Workplace work;
  write_idx(work);
  const Words words = train_words({"--batch-size", "auto", "--replicas", "2", "--devices", "2", "--max-updates", "3"});
  const Ended ended = run(words, work.path());
  ASSERT_EQ(ended.exit_code, 0) << story_of(words, ended);
  const std::string config = content_of_file(work / "run/config.yaml");
  EXPECT_NE(config.find("batch-size: 4 "), std::string::npos) << "64 images, 8 updates of two replicas\n" << config;
}

TEST(PlanTest, SeveralDevicesAreComparedWithTotals) {
  const Workplace work;
  write_idx(work);
  const Words words = plan_words({"--devices", "1,2", "--batch-size", "8", "--json"});
  const Ended ended = run(words, work.path());
  SCOPED_TRACE(story_of(words, ended));
  ASSERT_EQ(ended.exit_code, 0);
  const size_t second = ended.out.find("\"devices\": 2");
  ASSERT_NE(second, std::string::npos) << ended.out;
  const std::string two = ended.out.substr(second);
  EXPECT_EQ(number_behind(two, "\"images_per_update\": "), 16);
  EXPECT_EQ(number_behind(two, "\"learning_rate\": "), 0.00625) << "of 16 images";
  EXPECT_EQ(number_behind(two, "\"updates_per_epoch\": "), 4);
  EXPECT_GT(number_behind(two, "\"exchange_bytes\": "), 0);
  EXPECT_GT(number_behind(two, "\"updates_per_second\": "), 0);
  EXPECT_NE(two.find("\"tried\": true"), std::string::npos) << "by two processes\n" << two;
  EXPECT_EQ(run(plan_words({"--devices", "2,x"}), work.path()).exit_code, 64);
  EXPECT_EQ(run(plan_words({"--devices", "3", "--replicas", "4"}), work.path()).exit_code, 78);
}

TEST(PlanTest, AnUpdateKeepsItsSizeWhateverTheBatch) {
  const Workplace work;
  write_idx(work);
  const Words words = train_words({"--batch-size", "auto", "--total-batch-size", "48", "--dry-run"});
  const Ended ended = run(words, work.path());
  ASSERT_EQ(ended.exit_code, 0) << story_of(words, ended);
  EXPECT_NE(ended.out.find("48 images per device x 1 accumulation x 1 device = 48 per update"), std::string::npos)
      << ended.out;
  const Words given = train_words({"--batch-size", "16", "--total-batch-size", "48", "--dry-run"});
  EXPECT_NE(run(given, work.path()).out.find("16 images per device x 3 accumulation"), std::string::npos);
  const Words torn = train_words({"--batch-size", "16", "--total-batch-size", "40"});
  EXPECT_EQ(run(torn, work.path()).exit_code, 78);
}

}  // namespace
}  // namespace stoker::cli
