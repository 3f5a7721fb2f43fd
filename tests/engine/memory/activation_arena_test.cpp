// SPDX-License-Identifier: Apache-2.0
#include "engine/memory/activation_arena.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "core/system/machine.h"
#include "tests/engine/probed_run.h"

namespace stoker::engine {
namespace {

constexpr int64_t kFloats = 1 << 20;

class ActivationArenaTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!install_activation_arena()) GTEST_SKIP() << "under AddressSanitizer, or a limit of address space";
    trim_activation_arena();
    held_before_ = activation_arena_held();
  }
  int64_t held() const { return activation_arena_held() - held_before_; }

 private:
  int64_t held_before_ = 0;
};

const void* memory_of_one(int64_t floats) { return at::empty({floats}).data_ptr(); }

TEST_F(ActivationArenaTest, TensorsOfAScopeTakeTheSamePlaceAgain) {
  const ActivationArenaScope scope;
  const at::Tensor first = at::empty({kFloats});
  const void* const second = memory_of_one(kFloats);
  const int64_t high_water_mark = activation_arena_high_water_mark();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(memory_of_one(kFloats), second);
  EXPECT_EQ(activation_arena_high_water_mark(), high_water_mark);
}

TEST_F(ActivationArenaTest, TensorsOfOtherThreadsAndSmallOnesComeFromElsewhere) {
  at::Tensor small, other, after;
  int64_t high_water_mark = 0;
  {
    const ActivationArenaScope scope;
    high_water_mark = activation_arena_high_water_mark();
    small = at::zeros({100});
    EXPECT_EQ(held(), 0);
    std::thread([&] { other = at::zeros({64 * kFloats}); }).join();
  }
  after = at::zeros({64 * kFloats});
  EXPECT_EQ(activation_arena_high_water_mark(), high_water_mark);
}

TEST_F(ActivationArenaTest, ATensorMayOutliveItsScopeAndEndInAnotherThread) {
  auto kept = std::make_unique<at::Tensor>();
  const void* offset = nullptr;
  {
    const ActivationArenaScope scope;
    *kept = at::ones({kFloats});
    offset = kept->data_ptr();
  }
  EXPECT_EQ(kept->sum().item<float>(), kFloats);
  EXPECT_EQ(held(), kFloats * 4);
  std::thread([&] { kept.reset(); }).join();
  EXPECT_EQ(held(), 0);
  const ActivationArenaScope scope;
  EXPECT_EQ(memory_of_one(kFloats), offset);
}

TEST_F(ActivationArenaTest, AllButTensorsIsGivenBack) {
  constexpr int64_t kMany = 16 * kFloats;
  const ActivationArenaScope scope;
  at::Tensor before = at::ones({kMany});
  const at::Tensor kept = at::full({kFloats}, 7);
  at::ones({kMany});  // is gone at once, at the end
  before = at::Tensor();
  const int64_t resident = core::read_process_memory().resident_bytes,
                high_water_mark = activation_arena_high_water_mark();
  trim_activation_arena();
  const double bytes = 4.0 * kMany;
  EXPECT_LT(core::read_process_memory().resident_bytes, static_cast<double>(resident) - 1.9 * bytes);
  EXPECT_LT(activation_arena_high_water_mark(), static_cast<double>(high_water_mark) - 0.9 * bytes);
  EXPECT_TRUE(kept.eq(7).all().item<bool>());
  EXPECT_EQ(at::ones({kMany}).sum().item<float>(), kMany) << "a gap that was given back is memory again";
}

TEST_F(ActivationArenaTest, MoreThanThereIsIsRefusedAndNothingIsLost) {
  const ActivationArenaScope scope;
  const at::Tensor kept = at::ones({kFloats});
  EXPECT_THROW(at::empty({int64_t{1} << 50}), c10::Error);
  EXPECT_EQ(kept.sum().item<float>(), kFloats);
  EXPECT_EQ(at::ones({kFloats}).sum().item<float>(), kFloats);
}

TEST_F(ActivationArenaTest, GrowsAsFarAsTheProbeOfAFewImagesForesees) {
  fixtures::ProbedRun run("small_cnn", 32, /*width=*/16);
  const ActivationModel model = probe_memory(run.learner, *run.task, run.settings);
  constexpr int64_t kImages = 512;
  trim_activation_arena();
  const int64_t foreseen = model.working_bytes({kImages, 0, 0, 0});
  run.measured_bytes(kImages);
  const auto grown = static_cast<double>(activation_arena_high_water_mark());
  EXPECT_NEAR(static_cast<double>(foreseen) / grown, 1, 0.03);
}

}  // namespace
}  // namespace stoker::engine
