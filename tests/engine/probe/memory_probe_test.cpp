// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/memory_probe.h"

#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <new>

#include "core/error.h"
#include "engine/device/out_of_memory.h"
#include "engine/probe/launch_overhead.h"
#include "engine/probe/precision_speed.h"
#include "engine/step/state_snapshot.h"
#include "tests/engine/probed_run.h"

namespace stoker::engine {
namespace {

using fixtures::ProbedRun;

TEST(MemoryProbeTest, MoreImagesAreForeseenFromFew) {
  for (const auto& [name, side] : {std::pair("small_cnn", 32), std::pair("peer_cnn", 32), std::pair("resnet18", 64)}) {
    ProbedRun run(name, side, /*width=*/8);
    const ActivationModel model = probe_memory(run.learner, *run.task, run.settings);
    const auto predicted = static_cast<double>(model.training_bytes(16)),
               measured = static_cast<double>(run.measured_bytes(16));
    EXPECT_NEAR(predicted / measured, 1, 0.02) << name;
    EXPECT_LT(model.evaluation_bytes(16), model.training_bytes(16)) << name;
  }
}

/// Whatever `probe` tries, training goes on as if nothing had been.
void expect_nothing_left_behind(const std::function<void(ProbedRun&)>& probe) {
  ProbedRun run("small_cnn", 32, /*width=*/8);
  const at::Tensor next = [&] {
    const StateSnapshot kept(*run.learner.model, torch::kCPU);
    const at::Tensor drawn = at::rand({4});
    kept.restore();
    return drawn;
  }();
  std::vector<at::Tensor> before;
  for (const model::NamedTensor& entry : model::state_of(*run.learner.model)) before.push_back(entry.tensor.clone());
  probe(run);
  const auto after = model::state_of(*run.learner.model);
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(at::equal(before[i], after[i].tensor)) << after[i].name;
  EXPECT_TRUE(run.learner.optimizer->gradients().empty());
  EXPECT_TRUE(run.learner.model->is_training());
  EXPECT_TRUE(at::equal(at::rand({4}), next)) << "random numbers go on as if nothing had been";
}

TEST(MemoryProbeTest, LeavesNothingBehind) {
  expect_nothing_left_behind([](ProbedRun& run) { probe_memory(run.learner, *run.task, run.settings); });
}

TEST(PrecisionSpeedTest, ComparesBothPrecisionsAndLeavesNothingBehind) {
  const Precision bfloat16{torch::kCPU, /*autocast=*/true, at::kBFloat16};
  expect_nothing_left_behind([&](ProbedRun& run) {
    const int threads = at::get_num_threads();
    const double speed =
        precision_speed(run.learner, *run.task, run.settings, bfloat16, /*batch_size=*/4, /*least_seconds=*/0.01);
    EXPECT_TRUE(std::isfinite(speed) && speed > 0) << speed;
    EXPECT_EQ(at::get_num_threads(), threads);
  });
}

/// A network that cannot compute in bfloat16, as where oneDNN has no way.
class FloatOnly : public model::ImageModel {
 public:
  FloatOnly() { weight_ = register_parameter("weight", torch::ones({3})); }
  torch::Tensor forward(torch::Tensor images) override {
    if (at::autocast::is_cpu_enabled()) throw std::runtime_error("could not create a primitive descriptor iterator");
    return images.mean({2, 3}) * weight_;
  }
  std::string head_prefix() const override { return ""; }

 private:
  torch::Tensor weight_;
};

TEST(PrecisionSpeedTest, IsNoneWhereTheReducedPrecisionCannotBeComputed) {
  ProbedRun run("small_cnn", 32, /*width=*/8);
  run.learner.model = std::make_shared<FloatOnly>();
  run.settings.num_classes = 3;
  const Precision bfloat16{torch::kCPU, /*autocast=*/true, at::kBFloat16};
  EXPECT_EQ(precision_speed(run.learner, *run.task, run.settings, bfloat16, 4, 0.01), 0);
}

TEST(LaunchProbeTest, LeavesNothingBehind) {
  for (const int64_t batch : {2, 32}) {
    expect_nothing_left_behind([batch](ProbedRun& run) {
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

TEST(MemoryProbeTest, ImagesTooLargeToTryAreForeseenFromSmallOnes) {
  ProbedRun run("small_cnn", 4096, /*width=*/8);
  run.settings.memory_bytes = 500'000'000;
  const ActivationModel model = probe_memory(run.learner, *run.task, run.settings);
  EXPECT_EQ(model.probe_side, 128);
  EXPECT_EQ(model.area_factor, 1024);
  EXPECT_GT(model.training_bytes(2), 1'000'000'000);
}

TEST(MemoryProbeTest, MemoryIsKnownToHaveRunOutByTypeAndByWords) {
  EXPECT_TRUE(is_out_of_memory(std::bad_alloc()));
  EXPECT_TRUE(is_out_of_memory(core::Error(core::ErrorKind::out_of_memory, "x")));
  EXPECT_FALSE(is_out_of_memory(core::Error(core::ErrorKind::io, "out of memory")));
  EXPECT_FALSE(is_out_of_memory(std::runtime_error("out of memory")));
  try {
    at::empty({int64_t{1} << 60});
    FAIL() << "an exbibyte";
  } catch (const std::exception& error) {
    EXPECT_TRUE(is_out_of_memory(error)) << error.what();
  }
  try {
    at::empty({2}).view({3});
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_FALSE(is_out_of_memory(error));
    EXPECT_EQ(short_text_of(error).find("frame #"), std::string::npos);
  }
}

}  // namespace
}  // namespace stoker::engine
