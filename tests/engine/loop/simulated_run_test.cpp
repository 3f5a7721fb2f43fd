// SPDX-License-Identifier: Apache-2.0
// Whole runs on a simulated device: the feed that copies ahead, updates with a loss scale, reports, validation and
// checkpoints. Whatever the order in which the device does things, the bits are those of the CPU; and faults of which
// all of them must be free are found here.
#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <thread>

#include "engine/checkpoint/saving_thread.h"
#include "engine/checkpoint/trained_state.h"
#include "loop/tiny_run.h"
#include "optim/torch_kernels.h"
#include "tests/faulty_file_system.h"
#include "tests/simulated_device.h"
#include "tests/simulated_operations.h"

namespace stoker::engine {
namespace {

using namespace tiny_run;
using fixtures::DeviceFault;
using fixtures::SimulatedDevice;

/// A convolution, batch norm and a classifier, for any device: LibTorch's own modules cannot be moved to one that it
/// does not know.
class AnywhereModel : public model::ImageModel {
 public:
  explicit AnywhereModel(torch::Device device) {
    const auto part = [this](const char* name) { return register_module(name, std::make_shared<torch::nn::Module>()); };
    const auto conv = part("conv"), norm = part("norm"), fc = part("fc");
    torch::manual_seed(11);
    kernel_ = conv->register_parameter("weight", (0.3 * at::randn({4, 1, 3, 3})).to(device));
    scale_ = norm->register_parameter("weight", at::ones({4}).to(device));
    shift_ = norm->register_parameter("bias", at::zeros({4}).to(device));
    mean_ = norm->register_buffer("running_mean", at::zeros({4}).to(device));
    variance_ = norm->register_buffer("running_var", at::ones({4}).to(device));
    weight_ = fc->register_parameter("weight", (0.1 * at::randn({4, 64})).to(device));
    bias_ = fc->register_parameter("bias", at::zeros({4}).to(device));
  }
  torch::Tensor forward(torch::Tensor images) override {
    const torch::Tensor maps = at::conv2d(images, kernel_, {}, 1, /*padding=*/1);
    const torch::Tensor normed = at::batch_norm(maps, scale_, shift_, mean_, variance_, is_training(),
                                                /*momentum=*/0.1, /*eps=*/1e-5, /*cudnn_enabled=*/false);
    return at::linear(at::relu(normed).flatten(1), weight_, bias_);
  }
  std::string head_prefix() const override { return "fc."; }

 private:
  torch::Tensor kernel_, scale_, shift_, mean_, variance_, weight_, bias_;
};

/// The paths that normalise agree to the bit where both factors are powers of two.
TinyOptions options_on(torch::Device device) {
  TinyOptions options;
  options.images = 43;
  options.device = device;
  options.mean = {0};
  options.std = {64.0 / 255};
  options.make_model = [device] { return std::make_shared<AnywhereModel>(device); };
  options.scaling.enabled = true;
  options.scaling.init_scale = 8;
  options.scaling.growth_interval = 4;
  options.limits.epochs = 2;
  options.report_every = config::Interval::updates(2);
  options.save_every = config::Interval::updates(3);
  options.ema_decay = 0.9;
  options.clip_grad = 1;
  return options;
}

/// The results of a run: its state, what its newest checkpoint holds and what it reported.
struct Ended {
  std::vector<NamedTensor> state, saved;
  std::vector<double> reported;
  int64_t skipped = 0;
  std::string failure;  ///< failure of the run or of the device; empty: none
};

bool same(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
  const StateDifference difference = compare_states(a, b);
  return !a.empty() && difference.different.empty() && difference.only_one.empty();
}

bool same(const Ended& a, const Ended& b) {
  return same(a.state, b.state) && same(a.saved, b.saved) && a.reported == b.reported && a.failure == b.failure;
}

void read_end(TinyRun& run, Ended& end) {
  for (const NamedTensor& entry : trained_state(run.learner())) {
    end.state.push_back({entry.name, entry.tensor.detach().to(torch::kCPU).clone()});
  }
  end.saved = read_trained_state(run.checkpoints().files().newest_verified());
  for (const ReportEvent& report : run.recorder_.reports) {
    const bool has_norm = std::isfinite(report.gradient_norm);  // not of an update that is skipped
    end.reported.insert(end.reported.end(),
                        {report.train_loss, report.train_score.value, has_norm ? report.gradient_norm : -1,
                         report.loss_scale, static_cast<double>(report.skipped_updates)});
    end.skipped = report.skipped_updates;
  }
  for (const EpochEvent& epoch : run.recorder_.epochs) {
    end.reported.insert(end.reported.end(), {epoch.train_loss, epoch.eval_loss});
  }
}

/// Reads of the device since the update before.
class ReadRecorder : public Observer {
 public:
  std::vector<int64_t> reads;
  void on_update(const UpdateEvent&) override { reads.push_back(since_last()); }
  void on_report(const ReportEvent&) override { since_last(); }
  void on_epoch(const EpochEvent&) override { since_last(); }

 private:
  int64_t since_last() {
    const int64_t now = SimulatedDevice::instance().reads(), more = now - last_;
    last_ = now;
    return more;
  }
  int64_t last_ = SimulatedDevice::instance().reads();
};

class SimulatedRunTest : public TrainerTest {
 protected:
  ~SimulatedRunTest() override {
    SimulatedDevice::instance().forget();
    SimulatedDevice::instance().begin(0, DeviceFault::none);
  }

  /// The first two updates overflow. `stop_after`: and a second process continues; -1: it does not stop.
  Ended trained(const TinyOptions& options, int64_t stop_after = -1) {
    const std::string folder = folder_ / ("run" + std::to_string(++runs_));
    Ended end;
    for (int process = stop_after < 0 ? 1 : 0; process < 2; ++process) {
      core::request_stop(0);
      TinyRun run(folder, options);
      if (process == 0 || stop_after < 0) run.spoil_gradients(2);
      run.recorder_.stop_after_update = process == 0 ? stop_after : -1;
      try {
        run.go();
        if (process == 1) read_end(run, end);
      } catch (const std::exception& error) {
        end.failure = error.what();
      }
      if (end.failure.empty()) end.failure = SimulatedDevice::instance().failure();
      SimulatedDevice::instance().forget();  // it may write to what the run has read
    }
    return end;
  }
  Ended on_cpu(const config::ResolvedOptimOptions& optim = {}) {
    const optim::DeviceKernelsScope as_on_a_device;
    TinyOptions options = options_on(torch::kCPU);
    options.optim = optim;
    return trained(options);
  }
  Ended on_device(uint64_t seed, DeviceFault fault = DeviceFault::none, int64_t stop_after = -1,
                  const config::ResolvedOptimOptions& optim = {}) {
    SimulatedDevice::instance().begin(seed, fault);
    TinyOptions options = options_on(SimulatedDevice::device());
    options.optim = optim;
    return trained(options, stop_after);
  }

 private:
  int64_t runs_ = 0;
};

config::ResolvedOptimOptions adam() {
  config::ResolvedOptimOptions options;
  options.opt = config::OptimizerKind::adam;
  return options;
}

TEST_F(SimulatedRunTest, ARunHasTheBitsOfTheCpuInAnyOrderOfThings) {
  const Ended cpu = on_cpu();
  ASSERT_EQ(cpu.skipped, 2);
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Ended device = on_device(seed);
    EXPECT_EQ(device.failure, "");
    EXPECT_EQ(compare_states(cpu.state, device.state).different, std::vector<std::string>{}) << seed;
    EXPECT_EQ(cpu.reported, device.reported);
    EXPECT_TRUE(same(cpu, device)) << seed;
  }
}

TEST_F(SimulatedRunTest, AnUpdateThatOverflowsIsSkippedByTheDeviceAlone) {
  const Ended cpu = on_cpu(adam());
  ASSERT_EQ(cpu.skipped, 2);
  for (uint64_t seed = 1; seed <= 10; ++seed) EXPECT_TRUE(same(cpu, on_device(seed, DeviceFault::none, -1, adam())));
}

TEST_F(SimulatedRunTest, ARunThatWasStoppedEndsWithTheBitsOfOneThatWasNot) {
  const Ended unbroken = on_cpu();
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const Ended resumed = on_device(seed, DeviceFault::none, /*stop_after=*/5);
    EXPECT_EQ(resumed.failure, "");
    EXPECT_TRUE(same(unbroken.state, resumed.state)) << seed;
    EXPECT_TRUE(same(unbroken.saved, resumed.saved)) << seed;
  }
}

/// Each checkpoint takes longer than the updates up to the next one.
class SlowFileSystem : public fixtures::FaultyFileSystem {
 public:
  using FaultyFileSystem::FaultyFileSystem;
  int make_directory(const std::string& path) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return FaultyFileSystem::make_directory(path);
  }
};

TEST_F(SimulatedRunTest, ACheckpointThatIsStillWrittenKeepsItsCopyUntilItIsDone) {
  const Ended cpu = on_cpu();
  SlowFileSystem slow(folder_.path());
  TinyOptions options = options_on(SimulatedDevice::device());
  options.file_system = &slow;
  SimulatedDevice::instance().begin(1, DeviceFault::none);
  EXPECT_TRUE(same(cpu, trained(options)));
}

TEST_F(SimulatedRunTest, UpdatesReadNothingFromTheDevice) {
  SimulatedDevice::instance().begin(1, DeviceFault::none);
  TinyOptions options = options_on(SimulatedDevice::device());
  options.optim = adam();
  options.save_every = config::Interval::epochs(1);
  TinyRun run(folder_ / "run", options);
  ReadRecorder recorder;
  run.observers_.add(recorder);
  run.go();
  ASSERT_EQ(recorder.reads.size(), 12U);
  for (size_t i = 0; i < recorder.reads.size(); ++i) {
    EXPECT_TRUE(i % 6 == 0 || recorder.reads[i] == 0) << i;  // an epoch begins with what its begin reads
  }
}

TEST_F(SimulatedRunTest, PlantedFaultsAreFound) {
  const std::pair<DeviceFault, const char*> faults[] = {
      {DeviceFault::no_wait, "computing does not wait for the copy of its batch"},
      {DeviceFault::done_too_early, "buffers of batches are given back before they are copied"},
      {DeviceFault::no_record_stream, "a batch's memory is free while computing reads it"},
      {DeviceFault::event_on_wrong_stream, "the event of a copy is recorded on the stream that computes"},
      {DeviceFault::no_synchronisation, "a checkpoint is written from copies that are not done"},
      {DeviceFault::reads_too_early, "losses and overflows are read before they are computed"},
  };
  const Ended cpu = on_cpu();
  for (const auto& [fault, name] : faults) {
    uint64_t found = 0;
    for (uint64_t seed = 1; found == 0 && seed <= 40; ++seed) {
      if (!same(cpu, on_device(seed, fault))) found = seed;
    }
    std::printf("%s: found by order %llu\n", name, static_cast<unsigned long long>(found));
    EXPECT_GT(found, 0U) << name;
  }
}

TEST_F(SimulatedRunTest, WhatIsStagedIsWhatTheDeviceHeldWhenItWasAskedFor) {
  const auto staged_right = [](uint64_t seed, DeviceFault fault) {
    SimulatedDevice& device = SimulatedDevice::instance();
    device.begin(seed, fault);
    Staging staging(device.device());
    torch::Tensor weight = at::zeros({100}, at::TensorOptions(device.device()));
    bool right = true;
    for (int save = 1; save <= 3; ++save) {
      weight.add_(1);  // not done yet
      const torch::Tensor copy = staging.copy({{{"weight", weight}}})[0][0].tensor;
      right = right && copy.eq(save).all().item<bool>();
      weight.add_(1).sub_(1);  // training continues
      device.run_pending();
      right = right && copy.eq(save).all().item<bool>();
    }
    device.forget();
    return right;
  };
  bool found = false;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    EXPECT_TRUE(staged_right(seed, DeviceFault::none)) << seed;
    found = found || !staged_right(seed, DeviceFault::no_synchronisation);
  }
  EXPECT_TRUE(found);
}

TEST_F(SimulatedRunTest, StateThatLiesOnTheHostIsRefused) {
  const torch::Tensor weight = at::zeros({4}, at::TensorOptions(SimulatedDevice::device())), momentum = at::zeros({4});
  EXPECT_THROW(at::_foreach_add_({weight}, {momentum}, 1), c10::Error);
  EXPECT_THROW(at::_foreach_add_({momentum}, {weight}, 1), c10::Error);
}

/// Adam that skips where found_inf is set, as CUDA has it; LibTorch 1.13 has none for the CPU. The arithmetic is that
/// of the run that it is compared with.
void fused_adam(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  fixtures::queue(operation, *stack, [](torch::jit::Stack& arguments) {
    const auto tensors = [&arguments](size_t i) { return arguments[i].toTensorVector(); };
    const auto number = [&arguments](size_t i) { return arguments[i].toDouble(); };
    const torch::Tensor skip = arguments[14].isTensor() ? arguments[14].toTensor() : torch::Tensor();
    if (!skip.defined() || skip.item<float>() == 0) {
      const optim::AdamRule rule{number(6), number(7), number(8), number(10), number(9), /*decoupled=*/false};
      optim::foreach_adam({tensors(0), tensors(1), tensors(2), tensors(3)}, rule, tensors(5)[0].item<int64_t>());
    }
    arguments.clear();
  });
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_fused_adam_", torch::CppFunction::makeFromBoxedFunction<&fused_adam>());
}

}  // namespace
}  // namespace stoker::engine
