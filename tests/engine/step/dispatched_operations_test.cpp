// SPDX-License-Identifier: Apache-2.0
// How many operations an update calls in LibTorch, as on a device: a device that is faster than its host
// waits for the host to launch them. Ceilings, so that a loop over tensors does not slip in.
#include <gtest/gtest.h>
#include <torch/version.h>

#include <cstdio>

#include "engine/step/replica_sum.h"
#include "engine/step/state_snapshot.h"
#include "engine/step/update_step.h"
#include "kernels/cpu.h"
#include "optim/torch_kernels.h"
#include "probed_run.h"
#include "tests/dispatched_operations.h"

namespace stoker::engine {
namespace {

struct Measured {
  int64_t forward_and_backward = 0, optimizer = 0, average = 0, snapshot = 0;
  int64_t all() const { return forward_and_backward + optimizer + average; }
};

struct CountedRun : fixtures::ProbedRun {
  CountedRun(const std::string& model, int64_t side) : ProbedRun(model, side, /*width=*/32) {
    learner.ema = std::make_unique<optim::Ema>(*learner.model, 0.999, /*warmup=*/true);
    learner.model->train();
    update_settings.clip_grad = 1;
    batch.images = at::randn({2, 3, side, side});  // as loops for CPUs do not take them
    batch.labels = at::zeros({2}, at::kLong);
    batch.targets = at::zeros({2, 10});
  }
  UpdateSettings update_settings;
  data::Batch batch;
  const optim::DeviceKernelsScope as_on_a_device;
};

/// The second update's: the first makes what stays.
Measured operations_of_update(const std::string& model, int64_t side) {
  CountedRun run(model, side);
  UpdateStep step(run.update_settings, *run.task, run.learner);
  Measured measured;
  for (int update = 0; update < 2; ++update) {
    measured.forward_and_backward = fixtures::operations_of([&] { step.accumulate(run.batch, 2); });
    std::unique_ptr<optim::Ema> average = std::move(run.learner.ema);
    measured.optimizer = fixtures::operations_of([&] { step.apply({0.01}); });
    run.learner.ema = std::move(average);
    measured.average = fixtures::operations_of([&] { run.learner.ema->update(); });
    measured.snapshot = fixtures::operations_of([&] { BufferSnapshot(*run.learner.model).restore(); });
  }
  return measured;
}

/// All of an update under autocast and with a loss scale, as float16 has it. bfloat16 stands for it: not every release
/// computes float16 on CPUs.
int64_t operations_of_scaled_update(const std::string& model, int64_t side) {
  CountedRun run(model, side);
  optim::GradScalerSettings scaling;
  scaling.enabled = true;
  run.learner.scaler = std::make_unique<optim::GradScaler>(scaling, torch::kCPU);
  run.update_settings.precision.autocast = true;
  UpdateStep step(run.update_settings, *run.task, run.learner);
  const auto update = [&] {
    step.accumulate(run.batch, 2);
    step.apply({0.01});
  };
  update();
  return fixtures::operations_of(update);
}

struct Ceiling {
  const char* model;
  int64_t side, forward_and_backward, scaled;
};

class OperationsOfNetworksTest : public ::testing::TestWithParam<Ceiling> {};

TEST_P(OperationsOfNetworksTest, AnUpdateStaysBelowItsCeiling) {
  const Measured measured = operations_of_update(GetParam().model, GetParam().side);
  std::printf(
      "%s: forward and backward %lld, clipping and optimizer %lld, average %lld, all %lld; buffers kept and put back "
      "%lld\n",
      GetParam().model, static_cast<long long>(measured.forward_and_backward),
      static_cast<long long>(measured.optimizer), static_cast<long long>(measured.average),
      static_cast<long long>(measured.all()), static_cast<long long>(measured.snapshot));
  // Releases divide operations in different ways; the ceilings are tight for 1.13.
  EXPECT_LE(static_cast<double>(measured.forward_and_backward),
            (TORCH_VERSION_MAJOR > 1 ? 1.25 : 1) * static_cast<double>(GetParam().forward_and_backward));
  const int64_t scaled = operations_of_scaled_update(GetParam().model, GetParam().side);
  std::printf("%s: all with autocast and a loss scale %lld\n", GetParam().model, static_cast<long long>(scaled));
  // Without the kernel for gradients of weights, such as on CPUs with AMX, autocast converts each weight by itself.
  const double without_kernel = kernels::has_conv_weight_gradient() ? 1 : 1.12;
  EXPECT_LE(static_cast<double>(scaled),
            (TORCH_VERSION_MAJOR > 1 ? 1.25 : without_kernel) * static_cast<double>(GetParam().scaled));
  EXPECT_LE(measured.average, 2);
  EXPECT_LE(measured.snapshot, 20) << "buffers are copied one by one";
}

/// Two replicas without gradients: operations on buffers.
int64_t operations_of_exchange(fixtures::ProbedRun& run) {
  return fixtures::operations_of([&] {
    ReplicaSum sum(run.learner, 2, {});
    for (int64_t turn = 0; turn < 2; ++turn) {
      sum.begin_replica(turn);
      sum.end_replica(turn, {});
    }
    sum.agree(/*ran_out_of_memory=*/false);
    sum.finish();
  });
}

TEST(DispatchedOperationsTest, ReplicasExchangeTheirBuffersInAFewOperations) {
  fixtures::ProbedRun run("resnet50", 64, /*width=*/32);
  const int64_t together = operations_of_exchange(run);
  for (torch::Tensor buffer : run.learner.model->buffers()) buffer.set_data(buffer.clone());
  const int64_t one_by_one = operations_of_exchange(run);
  std::printf("resnet50: buffers of two replicas, %lld operations; were each by itself, %lld\n",
              static_cast<long long>(together), static_cast<long long>(one_by_one));
  EXPECT_LE(together, 60);
  EXPECT_GE(one_by_one, 1000);
}

std::string name_of(const ::testing::TestParamInfo<Ceiling>& info) { return info.param.model; }

INSTANTIATE_TEST_SUITE_P(DispatchedOperationsTest, OperationsOfNetworksTest,
                         ::testing::Values(Ceiling{"small_cnn", 32, 560, 1040}, Ceiling{"resnet18", 64, 1120, 1940},
                                           Ceiling{"resnet50", 64, 3140, 4600}),
                         name_of);

}  // namespace
}  // namespace stoker::engine
