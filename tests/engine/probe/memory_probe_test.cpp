// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/memory_probe.h"

#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <new>

#include "core/error.h"
#include "engine/device/device.h"
#include "engine/probe/launch_overhead.h"
#include "engine/step/state_snapshot.h"
#include "engine/task/evaluate.h"
#include "tests/engine/nothing_left_behind.h"
#include "tests/engine/probed_run.h"

namespace stoker::engine {
namespace {

using fixtures::ProbedRun;

TEST(MemoryProbeTest, MoreImagesArePredictedFromFew) {
  for (const auto& [name, side] : {std::pair("small_cnn", 32), std::pair("peer_cnn", 32), std::pair("resnet18", 64)}) {
    ProbedRun run(name, side, /*width=*/8);
    const ActivationModel model = probe_memory(run.learner, *run.task, run.settings);
    const auto predicted = static_cast<double>(model.training_bytes(16)),
               measured = static_cast<double>(run.measured_bytes(16));
    EXPECT_NEAR(predicted / measured, 1, 0.02) << name;
    EXPECT_LT(model.evaluation_bytes(16), model.training_bytes(16)) << name;
  }
}

/// The measured peak memory of an evaluation of `images`, its input included.
int64_t measured_evaluation(ProbedRun& run, int64_t images) {
  run.learner.model->eval();
  const data::Batch batch = noise_batch(run.settings, images, side_of(run.settings), torch::kCPU);
  return batch.images.nbytes() + peak_bytes(trace_allocations([&] {
           run.task->predictions(infer(*run.learner.model, batch.images, run.settings.update.precision,
                                       config::TestTimeAugmentation::none));
         }));
}

TEST(MemoryProbeTest, EvaluationsOfMoreImagesArePredictedWithoutALearner) {
  for (const auto& [name, side] : {std::pair("small_cnn", 32), std::pair("resnet18", 64), std::pair("resnet18", 512)}) {
    ProbedRun run(name, side, /*width=*/8);
    const int64_t images = side > 256 ? 2 : 16;
    const ActivationModel model =
        probe_evaluation_memory(*run.learner.model, *run.task, torch::kCPU, run.settings, images);
    EXPECT_EQ(model.probe_side, std::min(side, 256) == side ? side : 128);
    const auto predicted = static_cast<double>(model.evaluation_bytes(images)),
               measured = static_cast<double>(measured_evaluation(run, images));
    EXPECT_NEAR(predicted / measured, 1, 0.05) << name << " of " << side << " pixels";
  }
}

TEST(MemoryProbeTest, ANetworkOfOneSizeAloneIsTriedWithIt) {
  ProbedRun run("vit_s_16", 288, /*width=*/8);  // above 256 pixels others are tried with small images first
  for (const ActivationModel& model :
       {probe_memory(run.learner, *run.task, run.settings),
        probe_evaluation_memory(*run.learner.model, *run.task, torch::kCPU, run.settings, /*max_images=*/1)}) {
    EXPECT_EQ(model.probe_side, 288);
    EXPECT_EQ(model.area_factor, 1);
    EXPECT_GT(model.evaluation_bytes(1), 0);
  }
}

TEST(MemoryProbeTest, LeavesNothingBehind) {
  fixtures::expect_nothing_left_behind([](ProbedRun& run) { probe_memory(run.learner, *run.task, run.settings); });
}

TEST(LaunchProbeTest, LeavesNothingBehind) {
  for (const int64_t batch : {2, 32}) {
    fixtures::expect_nothing_left_behind([batch](ProbedRun& run) {
      const double seconds = overhead_seconds(run.learner, *run.task, run.settings, batch, /*least_seconds=*/0.01);
      EXPECT_TRUE(std::isfinite(seconds) && seconds >= 0) << seconds;
    });
  }
}

TEST(LaunchProbeTest, TakesNoMoreMemoryThanABatchThatIsNotTiny) {
  ProbedRun run("small_cnn", 32, /*width=*/8);
  const int64_t held = peak_bytes(trace_allocations(
      [&] { overhead_seconds(run.learner, *run.task, run.settings, /*batch_size=*/64, /*least_seconds=*/0); }));
  EXPECT_LT(held, 1.1 * static_cast<double>(run.measured_bytes(64)));
}

TEST(MemoryProbeTest, ImagesTooLargeToTryArePredictedFromSmallOnes) {
  ProbedRun run("small_cnn", 4096, /*width=*/8);
  run.settings.memory_bytes = 500'000'000;
  const ActivationModel model = probe_memory(run.learner, *run.task, run.settings);
  EXPECT_EQ(model.probe_side, 128);
  EXPECT_EQ(model.area_factor, 1024);
  EXPECT_GT(model.training_bytes(2), 1'000'000'000);
}

}  // namespace
}  // namespace stoker::engine
