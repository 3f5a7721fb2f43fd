// SPDX-License-Identifier: Apache-2.0
#include "plan/memory_plan.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/config/command_words.h"

namespace stoker::plan {
namespace {

constexpr int64_t kMB = 1'000'000;

/// One image takes 1 MB, besides 100 MB for all.
PlanInputs inputs_of(const std::string& device, int64_t train_images) {
  PlanInputs inputs;
  inputs.device = device;
  inputs.train_images = train_images;
  inputs.val_images = 100;
  inputs.program_bytes = 100 * kMB;
  inputs.training_bytes = [](int64_t images) { return images * kMB; };
  return inputs;
}

MemoryBudget budget_with(int64_t free_megabytes) {
  MemoryBudget budget;
  budget.host_held_bytes = 100 * kMB;
  budget.host_free_bytes = budget.device_free_bytes = free_megabytes * kMB;
  return budget;
}

int64_t chosen(const BatchRules& rules, const PlanInputs& inputs, int64_t free_megabytes) {
  return choose_batch(rules, inputs, budget_with(free_megabytes)).value;
}

BatchRules rules_for(int64_t total_batch_size) {
  BatchRules rules;
  rules.total_batch_size = total_batch_size;
  return rules;
}

TEST(BatchChoiceTest, AnAutomaticBatchIsTheMostThatFitsWithAMargin) {
  EXPECT_EQ(chosen({}, inputs_of("cuda:0", 1'000'000), 1000), 896) << "900 with 10 % to spare, in eights";
  EXPECT_EQ(chosen({}, inputs_of("cpu", 1'000'000), 50), 40) << "20 % to spare";
  EXPECT_EQ(chosen({}, inputs_of("cpu", 1'000'000), 100'000), 64) << "more is of no use on a CPU";
  EXPECT_EQ(chosen({}, inputs_of("cuda:0", 999'999), 4), 3) << "few are not rounded";
}

TEST(BatchChoiceTest, AnEpochKeepsItsUpdates) {
  EXPECT_EQ(chosen({}, inputs_of("cuda:0", 800), 1000), 96) << "800 images in 8 updates are 100, in eights 96";
  EXPECT_EQ(chosen({}, inputs_of("cpu", 257), 1000), 32) << "one image alone is left out";
  BatchRules keeps_all;
  keeps_all.keeps_any_last_batch = true;
  EXPECT_EQ(chosen(keeps_all, inputs_of("cpu", 257), 1000), 31) << "batches of 32 would leave one image alone";
}

TEST(BatchChoiceTest, ReplicasShareTheUpdatesOfAnEpochAndAnUpdateOfAGivenSize) {
  PlanInputs inputs = inputs_of("cuda:0", 800);
  inputs.replicas = 2;
  EXPECT_EQ(chosen({}, inputs, 1000), 48) << "800 images in 8 updates of 2 are 50, in eights 48";
  EXPECT_EQ(chosen(rules_for(96), inputs, 1000), 48);
}

TEST(BatchChoiceTest, EvaluationTakesTheSameBatchUnlessAnotherIsGiven) {
  PlanInputs inputs = inputs_of("cuda:0", 1'000'000);
  inputs.val_images = 100'000;
  inputs.evaluation_bytes = [](int64_t images) { return 2 * images * kMB; };
  EXPECT_EQ(chosen({}, inputs, 1000), 448) << "450 are evaluated in 900 MB";
  inputs.val_batch_size = 64;
  BatchRules given;
  given.val_batch_is_given = true;
  EXPECT_EQ(chosen(given, inputs, 1000), 896);
}

TEST(BatchChoiceTest, ATotalBatchIsDivided) {
  EXPECT_EQ(chosen(rules_for(1000), inputs_of("cuda:0", 1'000'000), 600), 500);
  EXPECT_EQ(chosen(rules_for(96), inputs_of("cpu", 1'000'000), 1000), 48);
}

TEST(BatchChoiceTest, WhereNotEvenOneImageFitsThereIsNoBatch) {
  PlanInputs inputs = inputs_of("cpu", 1000);
  inputs.program_bytes = 500 * kMB;
  const auto failure = fixtures::failure_of([&] { chosen({}, inputs, 10); });
  EXPECT_EQ(failure.kind, core::ErrorKind::out_of_memory);
  EXPECT_TRUE(failure.mentions("not even one image fits")) << failure.message;
}

TEST(BatchChoiceTest, ARefusalNamesWhatFits) {
  PlanInputs inputs = inputs_of("cpu", 1'000'000);
  inputs.batch_size = 64;
  inputs.val_batch_size = 64;
  const auto failure =
      fixtures::failure_of([&] { require_enough_memory(inputs, budget_with(35), /*plan_check=*/true); });
  EXPECT_EQ(failure.kind, core::ErrorKind::out_of_memory);
  EXPECT_NE(
      failure.hint.find("this fits: --batch-size 33, or for the same update --batch-size 32 --accumulation-steps 2"),
      std::string::npos)
      << failure.hint;
  EXPECT_NO_THROW(require_enough_memory(inputs, budget_with(100), /*plan_check=*/true));
  EXPECT_NO_THROW(require_enough_memory(inputs, budget_with(33), /*plan_check=*/false));
}

}  // namespace
}  // namespace stoker::plan
