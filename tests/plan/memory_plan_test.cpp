// SPDX-License-Identifier: Apache-2.0
#include "plan/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "core/error.h"
#include "core/format.h"

namespace stoker::plan {
namespace {

constexpr int64_t kMegabyte = 1'000'000;

/// A run on the CPU with round numbers: 1 MB per image of activations beside 10 MB of gradients.
PlanInputs small_run() {
  PlanInputs inputs;
  inputs.batch_size = 64;
  inputs.val_batch_size = 32;
  inputs.num_workers = 2;
  inputs.prefetch_factor = 4;
  inputs.train_images = 6400;
  inputs.val_images = 320;
  inputs.pixel_bytes = 1000;
  inputs.input_bytes = 4000;
  inputs.scratch_bytes = kMegabyte;
  inputs.program_bytes = 200 * kMegabyte;
  inputs.data_bytes = 5 * kMegabyte;
  inputs.weight_bytes = inputs.gradient_bytes = inputs.optimizer_bytes = 10 * kMegabyte;
  inputs.largest_tensor_bytes = 2 * kMegabyte;
  inputs.training_bytes = [](int64_t images) { return 10 * kMegabyte + images * kMegabyte; };
  inputs.evaluation_bytes = [](int64_t images) { return images * kMegabyte / 4; };
  return inputs;
}

int64_t line_of(const std::vector<PlanLine>& lines, const std::string& name) {
  for (const PlanLine& line : lines) {
    if (line.name == name) return line.bytes;
  }
  return 0;
}

MemoryBudget budget_of(int64_t free_megabytes) {
  MemoryBudget budget;
  budget.host_held_bytes = 215 * kMegabyte;
  budget.host_free_bytes = free_megabytes * kMegabyte;
  return budget;
}

TEST(MemoryPlanTest, ACopyThatCheckpointsAreWrittenFromIsHeldAllTheTime) {
  PlanInputs inputs = small_run();
  const int64_t without = make_memory_plan(inputs).host_bytes;
  inputs.copies_to_save = true;
  const MemoryPlan plan = make_memory_plan(inputs);
  EXPECT_EQ(line_of(plan.on_host, "checkpoint copy"), plan.checkpoint_bytes);
  EXPECT_EQ(plan.host_bytes, without + plan.checkpoint_bytes);
}

TEST(MemoryPlanTest, PixelsThatStayAreOfTheDevice) {
  PlanInputs inputs = small_run();
  const int64_t without = make_memory_plan(inputs).host_bytes;
  inputs.resident_bytes = 7 * kMegabyte;
  EXPECT_EQ(make_memory_plan(inputs).host_bytes, without + 7 * kMegabyte) << "the CPU is the device";
  inputs.device = "cuda:0";
  EXPECT_EQ(line_of(make_memory_plan(inputs).on_device, "pixels"), 7 * kMegabyte);
}

TEST(MemoryPlanTest, PageLockedBuffersTakePowersOfTwo) {
  PlanInputs inputs = small_run();
  inputs.page_locked = true;
  EXPECT_EQ(line_of(make_memory_plan(inputs).on_host, "batch buffers"), 5 * 65'536 + 5 * 32'768) << "64,000 and 32,000";
  inputs.train_images = 10;
  EXPECT_EQ(line_of(make_memory_plan(inputs).on_host, "batch buffers"), 5 * 16'384 + 5 * 32'768) << "of 10 images";
}

TEST(MemoryPlanTest, LinesAddUpToTheHighestMoment) {
  const MemoryPlan plan = make_memory_plan(small_run());
  EXPECT_EQ(line_of(plan.on_host, "batch buffers"), 5 * 64 * 1000 + 5 * 32 * 1000);
  EXPECT_EQ(line_of(plan.on_host, "decode scratch"), 4 * kMegabyte);
  EXPECT_EQ(line_of(plan.on_host, "gradients"), 10 * kMegabyte);
  // 64 images to train on; the feed of the other split keeps its input of 32 images.
  EXPECT_EQ(line_of(plan.on_host, "activations"), 64 * kMegabyte + 32 * 4000);
  EXPECT_EQ(line_of(plan.on_host, "checkpoint"), 0) << "a copy of 2 MB while 74 MB lie free";
  int64_t sum = 0;
  for (const PlanLine& line : plan.on_host) sum += line.bytes;
  EXPECT_EQ(plan.host_bytes, sum);
  EXPECT_TRUE(plan.on_device.empty());
  EXPECT_EQ(plan.checkpoint_bytes, 20 * kMegabyte);
}

TEST(MemoryPlanTest, EvaluationCountsWhereItTakesMoreThanTraining) {
  PlanInputs inputs = small_run();
  inputs.val_batch_size = 320;
  inputs.evaluation_bytes = [](int64_t images) { return images * kMegabyte; };
  const MemoryPlan plan = make_memory_plan(inputs);
  EXPECT_EQ(line_of(plan.on_host, "activations") + 10 * kMegabyte, 320 * kMegabyte + 64 * 4000);
}

TEST(MemoryPlanTest, TheActivationArenaIsKnownByTheSizesOfAllBatches) {
  PlanInputs inputs = small_run();
  inputs.train_images = 6410;  // the last batch has 10
  inputs.working_bytes = [](const engine::BatchSizes& images) {
    EXPECT_EQ(images.train, 64);
    EXPECT_EQ(images.last_train, 10);
    EXPECT_EQ(images.val, 32);
    EXPECT_EQ(images.last_val, 0);
    return 90 * kMegabyte;
  };
  EXPECT_EQ(line_of(make_memory_plan(inputs).on_host, "activations") + 10 * kMegabyte,
            90 * kMegabyte + (64 + 10 + 32) * 4000)
      << "each feed keeps its inputs";
  EXPECT_EQ(line_of(make_memory_plan(inputs).on_host, "checkpoint"), 2 * kMegabyte)
      << "working memory is not for others";
}

TEST(MemoryPlanTest, SlabsAreNoLargerThanAnEpoch) {
  PlanInputs inputs = small_run();
  inputs.train_images = 100;
  inputs.val_images = 40;
  EXPECT_EQ(line_of(make_memory_plan(inputs).on_host, "batch buffers"), 140 * 1000);
}

TEST(MemoryPlanTest, ADeviceHoldsTheNetworkAndTheHostTheData) {
  PlanInputs inputs = small_run();
  inputs.device = "cuda:0";
  const MemoryPlan plan = make_memory_plan(inputs);
  EXPECT_EQ(line_of(plan.on_host, "weights"), 0);
  EXPECT_EQ(line_of(plan.on_host, "checkpoint"), 2 * kMegabyte) << "the copy of one tensor on its way to disk";
  EXPECT_EQ(plan.device_bytes, (10 + 10 + 74) * kMegabyte + 2 * 64 * 1000);
}

TEST(MemoryPlanTest, ReadingACheckpointBackCountsWhereItIsMore) {
  PlanInputs inputs = small_run();
  inputs.training_bytes = [](int64_t) { return 12 * kMegabyte; };
  inputs.evaluation_bytes = nullptr;
  const int64_t fresh = make_memory_plan(inputs).host_bytes;
  inputs.resumes = true;  // 20 MB of tensors and the text of the largest file beside them
  const int64_t working = 12 * kMegabyte + 32 * 4000;
  EXPECT_EQ(make_memory_plan(inputs).host_bytes - fresh, 30 * kMegabyte - working);
}

TEST(MemoryPlanTest, WhatWasNeededBeforeTrainingIsNotForgotten) {
  PlanInputs inputs = small_run();
  inputs.highest_so_far_bytes = 900 * kMegabyte;
  EXPECT_EQ(make_memory_plan(inputs).host_bytes, 900 * kMegabyte);
}

TEST(MemoryPlanTest, ARunThatFitsIsNotShort) {
  const MemoryPlan plan = make_memory_plan(small_run());
  const int64_t more = (plan.host_bytes - budget_of(0).host_held_bytes) / kMegabyte;
  EXPECT_EQ(shortage(plan, budget_of(more + 1)), "");
  const std::string sentence = shortage(plan, budget_of(more));
  EXPECT_NE(sentence.find("the run would take 303."), std::string::npos) << sentence;
  EXPECT_NE(sentence.find(" are free"), std::string::npos) << sentence;
  EXPECT_EQ(shortage(plan, budget_of(0)), "") << "where nothing is known nothing is refused";
}

TEST(MemoryPlanTest, TheLargestBatchIsTheLastOneThatFits) {
  const PlanInputs inputs = small_run();
  const int64_t batch = largest_batch(inputs, budget_of(60), 1000, /*margin=*/0);
  ASSERT_GT(batch, 0);
  for (const bool one_more : {false, true}) {
    PlanInputs tried = inputs;
    tried.batch_size = batch + (one_more ? 1 : 0);
    tried.val_batch_size = std::min(tried.val_batch_size, tried.batch_size);
    EXPECT_EQ(shortage(make_memory_plan(tried), budget_of(60)).empty(), !one_more) << batch;
  }
  EXPECT_EQ(largest_batch(inputs, budget_of(60), 8, 0), 8) << "no more than requested";
  EXPECT_LT(largest_batch(inputs, budget_of(60), 1000, /*margin=*/0.5), batch);
  EXPECT_EQ(largest_batch(inputs, budget_of(5), 1000, 0), 0);
}

TEST(MemoryPlanTest, TheLeastChangeThatFitsIsNamed) {
  PlanInputs inputs = small_run();
  inputs.cache_bytes = 100 * kMegabyte;
  EXPECT_EQ(largest_fitting_change(inputs, budget_of(100)), "--cache none");
  inputs.cache_bytes = 0;
  inputs.num_workers = 16;
  EXPECT_EQ(largest_fitting_change(inputs, budget_of(110)), "--num-workers 8");
  inputs.num_workers = 2;
  const int64_t batch = largest_batch(inputs, budget_of(50), 64, /*margin=*/0.05);
  ASSERT_LT(batch, 32);
  ASSERT_GT(batch, 16);
  EXPECT_EQ(
      largest_fitting_change(inputs, budget_of(50)),
      core::format("--batch-size {0} --val-batch-size {0}, or for the same update --batch-size 8 --val-batch-size 8 "
                   "--accumulation-steps 8",
                   batch));
  EXPECT_EQ(largest_fitting_change(inputs, budget_of(1)), "");
}

/// The plan of a run with flags of an advice.
PlanInputs with_flags(PlanInputs inputs, const std::string& flags) {
  std::istringstream words(flags);
  const bool gives_val = flags.find("--val-batch-size") != std::string::npos;
  for (std::string word, value; words >> word >> value;) {
    if (word == "--cache") inputs.cache_bytes = 0;
    if (word == "--num-workers") inputs.num_workers = std::stoll(value);
    if (word == "--prefetch-factor") inputs.prefetch_factor = std::stoll(value);
    if (word == "--val-batch-size") inputs.val_batch_size = std::stoll(value);
    if (word == "--batch-size") {
      inputs.batch_size = std::stoll(value);
      if (!gives_val && !inputs.val_batch_is_given) inputs.val_batch_size = inputs.batch_size;
    }
    if (word != "--accumulation-steps" || inputs.accumulation_steps > 1) continue;
    inputs.accumulation_steps = std::stoll(value);  // gradients stay meanwhile
    inputs.training_bytes = [of = inputs.training_bytes, more = inputs.gradient_bytes](int64_t images) {
      return of(images) + more;
    };
  }
  return inputs;
}

TEST(MemoryPlanTest, EachAdviceFitsByItsOwnPlan) {
  int advices = 0;
  for (const int64_t cache : {0, 100}) {
    for (const bool val_is_given : {false, true}) {
      for (const int64_t images : {6400, 101}) {
        for (int64_t free = 1; free < 130; ++free) {
          PlanInputs inputs = small_run();
          inputs.cache_bytes = cache * kMegabyte;
          inputs.val_batch_is_given = val_is_given;
          inputs.val_batch_size = 64;
          inputs.train_images = inputs.val_images = images;
          inputs.input_bytes = 200'000;
          if (shortage(make_memory_plan(inputs), budget_of(free)).empty()) continue;
          std::string advice = largest_fitting_change(inputs, budget_of(free));
          for (const std::string other = ", or for the same update "; !advice.empty(); ++advices) {
            const size_t end = std::min(advice.find(other), advice.size());
            const std::string flags = advice.substr(0, end);
            EXPECT_EQ(shortage(make_memory_plan(with_flags(inputs, flags)), budget_of(free)), "") << flags;
            advice.erase(0, end + (end < advice.size() ? other.size() : 0));
          }
        }
      }
    }
  }
  EXPECT_GT(advices, 100);
}

/// Fewer images may be computed by other algorithms, which take more.
TEST(MemoryPlanTest, AnEvaluationBatchThatIsAdvisedIsPlannedItself) {
  std::vector<int64_t> planned;
  const auto plan_of = [&](int64_t batch) {
    planned.push_back(batch);
    PlanInputs inputs = small_run();
    inputs.train_images = 0;
    inputs.batch_size = inputs.val_batch_size = batch;
    inputs.evaluation_bytes = [batch](int64_t images) { return images * (batch > 100 ? 1 : 2) * kMegabyte; };
    return inputs;
  };
  std::string hint;
  try {
    require_evaluation_memory(plan_of, 200, budget_of(120), /*plan_check=*/true);
    FAIL() << "200 MB of images fit";
  } catch (const core::Error& error) {
    hint = error.hint();
  }
  const int64_t advised = planned.back();
  EXPECT_NE(hint.find(core::format("this fits: --val-batch-size {};", advised)), std::string::npos) << hint;
  EXPECT_LT(advised, 60);
  EXPECT_EQ(shortage(make_memory_plan(plan_of(advised)), budget_of(120)), "");
}

TEST(MemoryPlanTest, TheSummaryNamesEveryPart) {
  const std::vector<std::string> lines = plan_summary(make_memory_plan(small_run()), budget_of(1000));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0],
            "memory    host 303.6 MB of 1.2 GB: program 200.0 MB + data 5.0 MB + batch buffers 480.0 kB + decode "
            "scratch 4.0 MB + "
            "weights 10.0 MB + optimizer 10.0 MB + gradients 10.0 MB + activations 64.1 MB");
  EXPECT_EQ(plan_json(make_memory_plan(small_run()), budget_of(1000))["host"]["lines"].size(), 8u);
  PlanInputs with_results = small_run();
  with_results.result_bytes = 7'000'000;
  EXPECT_NE(plan_summary(make_memory_plan(with_results), budget_of(1000))[0].find("host 310.6 MB"), std::string::npos);
  EXPECT_NE(plan_summary(make_memory_plan(with_results), budget_of(1000))[0].find("+ results 7.0 MB"),
            std::string::npos);
}

}  // namespace
}  // namespace stoker::plan
