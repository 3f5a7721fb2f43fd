// SPDX-License-Identifier: Apache-2.0
#include "engine/memory/activation_arena.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

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

/// Bytes of whole pages inside the block that the kernel holds in memory.
int64_t resident_bytes(const void* block, int64_t bytes) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE)), begin = reinterpret_cast<uintptr_t>(block);
  const uintptr_t first = (begin + page - 1) / page * page, end = (begin + static_cast<uintptr_t>(bytes)) / page * page;
  std::vector<unsigned char> pages((end - first) / page);
  EXPECT_EQ(::mincore(reinterpret_cast<void*>(first), end - first, pages.data()), 0) << std::strerror(errno);
  const auto resident = std::count_if(pages.begin(), pages.end(), [](unsigned char state) { return state & 1; });
  return resident * static_cast<int64_t>(page);
}

TEST_F(ActivationArenaTest, AllButTensorsIsGivenBack) {
  constexpr int64_t kMany = 16 * kFloats, kBytes = 4 * kMany;
  const ActivationArenaScope scope;
  at::Tensor before = at::ones({kMany});
  const at::Tensor kept = at::full({kFloats}, 7);
  at::Tensor last = at::ones({kMany});
  const void *const gap = before.data_ptr(), *const end = last.data_ptr();
  last = at::Tensor();
  before = at::Tensor();
  EXPECT_GT(resident_bytes(gap, kBytes), 0);
  EXPECT_GT(resident_bytes(end, kBytes), 0);
  const int64_t high_water_mark = activation_arena_high_water_mark();
  trim_activation_arena();
  EXPECT_EQ(resident_bytes(gap, kBytes), 0);
  EXPECT_EQ(resident_bytes(end, kBytes), 0);
  EXPECT_EQ(activation_arena_high_water_mark(), high_water_mark - kBytes);
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

TEST_F(ActivationArenaTest, GrowsAsFarAsTheProbeOfAFewImagesPredicts) {
  fixtures::ProbedRun run("small_cnn", 32, /*width=*/16);
  const ActivationModel model = probe_memory(run.learner, *run.task, run.settings);
  constexpr int64_t kImages = 512;
  trim_activation_arena();
  const int64_t predicted = model.working_bytes({kImages, 0, 0, 0});
  run.measured_bytes(kImages);
  const auto grown = static_cast<double>(activation_arena_high_water_mark());
  EXPECT_NEAR(static_cast<double>(predicted) / grown, 1, 0.03);
}

}  // namespace
}  // namespace stoker::engine
