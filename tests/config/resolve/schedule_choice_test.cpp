// SPDX-License-Identifier: Apache-2.0
// Which optimizer, learning rate and schedule a run has that names none.
#include <gtest/gtest.h>

#include "config/table/table.h"
#include "tests/config/resolved_words.h"

namespace stoker::config {
namespace {

using fixtures::facts_of;
using fixtures::reason_of;

core::MachineFacts two_cpus() {
  core::MachineFacts machine;
  machine.cpus = 2;
  return machine;
}

Resolution rates_of(std::vector<std::string> words, const Facts& facts) {
  words.insert(words.begin(), {"--data-dir", "/data/flowers/"});
  return fixtures::resolved(words, facts);
}

TEST(ScheduleChoiceTest, AutomaticLearningRateScalesWithTheImagesPerUpdate) {
  const auto c = rates_of({"--lr-base", "0.1", "-b", "64", "--accumulation-steps", "8"}, facts_of(two_cpus()));
  EXPECT_DOUBLE_EQ(c.options.optim.lr, 0.2);
  EXPECT_EQ(reason_of(c, "lr"), "lr-base 0.1 x 512 images / 256");
  EXPECT_EQ(rates_of({"--lr", "0.7"}, facts_of(two_cpus())).options.optim.lr, 0.7);
}

TEST(ScheduleChoiceTest, AdamBeginsAtItsOwnRateUnlessAnotherIsGiven) {
  config::Facts facts = facts_of(two_cpus());
  facts.names_lr_base = false;
  EXPECT_DOUBLE_EQ(rates_of({"--opt", "adamw", "-b", "64"}, facts).options.optim.lr, 0.0005);
  EXPECT_DOUBLE_EQ(rates_of({"--opt", "sgd", "-b", "64"}, facts).options.optim.lr, 0.025);
  facts.names_lr_base = true;
  EXPECT_DOUBLE_EQ(rates_of({"--opt", "adamw", "-b", "64", "--lr-base", "0.1"}, facts).options.optim.lr, 0.025);
}

TEST(ScheduleChoiceTest, OptimizersHaveWhatTheirAuthorsUseUnlessOtherNumbersAreGiven) {
  Facts facts = facts_of(two_cpus());
  facts.names_lr_base = facts.names_momentum = facts.names_nesterov = facts.names_betas = facts.names_eps = false;
  const auto of = [&](const char* opt) { return rates_of({"-b", "256", "--opt", opt}, facts).options.optim; };
  EXPECT_EQ(of("Lion").beta2, 0.99);
  EXPECT_EQ(of("lion").lr, 0.0001);
  EXPECT_EQ(of("rmsprop").beta2, 0.99);
  EXPECT_EQ(of("rmsprop").momentum, 0.9);
  EXPECT_EQ(of("lamb").eps, 1e-6);
  EXPECT_EQ(of("lamb").lr, 0.003);
  EXPECT_EQ(of("Muon").momentum, 0.95);
  EXPECT_EQ(of("muon").lr, 0.001);
  EXPECT_EQ(of("NAdam").beta2, 0.999);
  EXPECT_TRUE(of("sgd").nesterov);
  EXPECT_FALSE(rates_of({"--opt", "sgd", "--momentum", "0"}, facts).options.optim.nesterov);
  facts.names_momentum = facts.names_betas = true;
  EXPECT_EQ(rates_of({"--opt", "lion", "--betas", "0.9,0.999"}, facts).options.optim.beta2, 0.999);
  EXPECT_EQ(rates_of({"--opt", "muon", "--momentum", "0.9"}, facts).options.optim.momentum, 0.9);
}

TEST(ScheduleChoiceTest, TheLossIsThatOfTheTaskAndItsNumbersAreWritten) {
  const std::pair<std::vector<std::string>, const char*> kCases[] = {
      {{}, "cross-entropy"},
      {{"--task", "binary", "--num-classes", "2"}, "bce"},
      {{"--task", "multilabel"}, "bce"},
      {{"--task", "regression"}, "smooth-l1"},
      {{"--loss", "focal"}, "focal,2"},
      {{"--loss", "bce,0.2"}, "bce,0.2"},
      {{"--task", "multilabel", "--loss", "asl,2"}, "asymmetric,2,1,0.05"},
      {{"--task", "regression", "--loss", "huber,0.5"}, "huber,0.5"},
      {{"--task", "regression", "--loss", "mse"}, "l2"}};
  for (const auto& [words, wanted] : kCases) {
    ResolvedOptions options = rates_of(words, facts_of(two_cpus())).options;
    Table table(options);
    EXPECT_EQ(table.row_of(options.task.loss).render(), wanted);
  }
}

TEST(ScheduleChoiceTest, RealNumbersAreLearnedWithAdamWUnlessAnotherIsGivenOrKept) {
  Facts facts = facts_of(two_cpus());
  facts.names_lr_base = false;
  const auto expect = [&](const std::vector<std::string>& words, OptimizerKind kind, double lr) {
    const ResolvedOptions o = rates_of(words, facts).options;
    SCOPED_TRACE(words.back());
    EXPECT_EQ(o.optim.opt, kind);
    EXPECT_DOUBLE_EQ(o.optim.lr, lr);
  };
  expect({"-b", "64", "--task", "regression"}, OptimizerKind::adamw, 0.001);
  expect({"-b", "64", "--task", "head-pose"}, OptimizerKind::adamw, 0.001);
  expect({"-b", "64", "--task", "regression", "--opt", "adamw"}, OptimizerKind::adamw, 0.0005);
  expect({"-b", "64", "--task", "multilabel"}, OptimizerKind::sgd, 0.025);
  expect({"-b", "64", "--task", "regression", "--opt", "sgd"}, OptimizerKind::sgd, 0.025);
  expect({"-b", "64", "--task", "regression", "--lr", "0.003"}, OptimizerKind::adamw, 0.003);
  facts.checkpoint = CheckpointFacts{};
  facts.checkpoint->opt = OptimizerKind::sgd;
  expect({"-b", "64", "--task", "regression"}, OptimizerKind::sgd, 0.025);
}

TEST(ScheduleChoiceTest, AnotherOptimizerThanThatOfTheCheckpointHasItsOwnRateAndSchedule) {
  DataFacts small = usual_data(Options());
  small.median_height = small.median_width = 32;
  small.train_images = 3200;
  Facts facts = facts_of(two_cpus(), small);
  facts.names_lr_base = false;
  const ResolvedOptions fresh = rates_of({"-b", "64", "--opt", "sgd"}, facts).options;
  facts.checkpoint = CheckpointFacts{};
  facts.checkpoint->opt = OptimizerKind::adamw;
  facts.checkpoint->lr = 0.007;
  facts.checkpoint->sched = ScheduleKind::constant;
  const ResolvedOptions other = rates_of({"-b", "64", "--opt", "sgd"}, facts).options;
  EXPECT_DOUBLE_EQ(other.optim.lr, fresh.optim.lr);
  EXPECT_EQ(other.schedule.sched, fresh.schedule.sched);
  const ResolvedOptions same = rates_of({"-b", "64", "--opt", "adamw"}, facts).options;
  EXPECT_DOUBLE_EQ(same.optim.lr, 0.007);
  EXPECT_EQ(same.schedule.sched, ScheduleKind::constant);
  facts.names_lr_base = true;
  EXPECT_DOUBLE_EQ(rates_of({"-b", "64", "--lr-base", "0.1"}, facts).options.optim.lr, 0.025) << "it is given now";
}

TEST(ScheduleChoiceTest, SmallImagesHaveOneCycleAtAHigherRateUnlessTheCommandShapesTheSchedule) {
  DataFacts small = usual_data(Options());
  small.median_height = small.median_width = 32;
  small.train_images = 3200;  // 500 updates of 64 in 10 epochs
  Facts facts = facts_of(two_cpus(), small);
  facts.names_lr_base = false;
  const auto expect = [&](const std::vector<std::string>& words, ScheduleKind kind, double lr) {
    const ResolvedOptions o = rates_of(words, facts).options;
    SCOPED_TRACE(words.size() > 2 ? words[2] : "nothing more");
    EXPECT_EQ(o.schedule.sched, kind);
    EXPECT_DOUBLE_EQ(o.optim.lr, lr);
  };
  expect({"-b", "64"}, ScheduleKind::one_cycle, 0.1);
  expect({"-b", "64", "--sched", "one-cycle"}, ScheduleKind::one_cycle, 0.025);
  expect({"-b", "64", "--sched", "cosine"}, ScheduleKind::cosine, 0.025);
  expect({"-b", "64", "--lr", "0.3"}, ScheduleKind::one_cycle, 0.3);
  expect({"-b", "64", "--epochs", "4"}, ScheduleKind::cosine, 0.025);  // 200 updates
  expect({"-b", "64", "--warmup-epochs", "1"}, ScheduleKind::cosine, 0.025);
  expect({"-b", "64", "--opt", "adamw"}, ScheduleKind::cosine, 0.0005);
  expect({"-b", "64", "--momentum", "0", "--no-nesterov"}, ScheduleKind::cosine, 0.025);
  facts.checkpoint = CheckpointFacts{};
  facts.checkpoint->sched = ScheduleKind::cosine;
  expect({"-b", "64"}, ScheduleKind::cosine, 0.025);
  facts.checkpoint.reset();
  facts.data->median_height = facts.data->median_width = 224;
  expect({"-b", "64"}, ScheduleKind::cosine, 0.025);
}

}  // namespace
}  // namespace stoker::config
