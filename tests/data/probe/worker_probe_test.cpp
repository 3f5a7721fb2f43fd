// SPDX-License-Identifier: Apache-2.0
#include "data/probe/worker_probe.h"

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <thread>

#include "core/error.h"
#include "core/system/stop_signal.h"
#include "made_data.h"

namespace stoker::data {
namespace {

/// One small file many times over, from a storage that takes its time; with one door or with many.
class SlowStorage : public Source {
 public:
  enum class Doors { one, many };

  SlowStorage(int64_t size, Doors doors) : size_(size), doors_(doors) {
    file_ = jpeg_of(pattern_pixels(8, 8, 3), 8, 8);
  }

  int64_t size() const override { return size_; }
  int64_t label(int64_t) const override { return 0; }
  std::string name(int64_t) const override { return "slow"; }
  std::string relative_name(int64_t) const override { return "slow"; }
  int64_t stored_bytes(int64_t) const override { return static_cast<int64_t>(file_.size()); }
  std::string read(int64_t, std::vector<uint8_t>&, SampleContent& content) const override {
    if (breaks_) throw core::Error(core::ErrorKind::io, "the disk is gone");
    std::unique_lock<std::mutex> door(door_, std::defer_lock);
    if (doors_ == Doors::one) door.lock();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    content.bytes = file_.data();
    content.size = file_.size();
    return "";
  }

  bool breaks_ = false;

 private:
  const int64_t size_;
  const Doors doors_;
  Bytes file_;
  mutable std::mutex door_;
};

TransformPlan tiny_plan() {
  TransformPlan plan;
  plan.shape = square_shape(8, 3);
  return plan;
}

WorkerProbeSettings four_workers(double seconds) {
  WorkerProbeSettings settings;
  settings.max_workers = 4;
  settings.seconds = seconds;
  return settings;
}

TEST(WorkerProbeTest, FindsThatMoreWorkersHelpAsLongAsTheyDo) {
  const SlowStorage storage(1000, SlowStorage::Doors::many);
  const WorkerProbe probe = probe_workers(storage, tiny_plan(), four_workers(0.9));
  ASSERT_EQ(probe.rates.size(), 3u);
  EXPECT_EQ(probe.rates[1].workers, 2);
  EXPECT_GT(probe.rates[2].images_per_second, 2 * probe.rates[0].images_per_second);
  EXPECT_LT(probe.rates[0].images_per_second, 520);  // 2 ms each, at least
  EXPECT_EQ(best_workers(probe.rates), 4);
}

TEST(WorkerProbeTest, FindsThatMoreWorkersDoNotHelpWhereTheStorageIsTheLimit) {
  const SlowStorage storage(1000, SlowStorage::Doors::one);
  const WorkerProbe probe = probe_workers(storage, tiny_plan(), four_workers(0.9));
  ASSERT_EQ(probe.rates.size(), 3u);
  EXPECT_LT(probe.rates[2].images_per_second, 1.5 * probe.rates[0].images_per_second);
}

TEST(WorkerProbeTest, TakesTheFewestWorkersThatAreAsFastAsAny) {
  EXPECT_EQ(best_workers({{1, 1000}, {2, 1900}, {4, 3700}}), 4);
  EXPECT_EQ(best_workers({{1, 1000}, {2, 1900}, {4, 1910}}), 2);
  EXPECT_EQ(best_workers({{1, 1000}, {2, 1900}, {4, 1800}}), 2);
  EXPECT_EQ(best_workers({{1, 1000}, {2, 960}}), 1);
  EXPECT_EQ(best_workers({{1, 960}, {2, 1000}}), 2);
  EXPECT_EQ(best_workers({}), 0);
  EXPECT_EQ(rates_text({{1, 1020.4}, {2, 1930}}), "1,020 images/s with 1, 1,930 with 2");
}

TEST(WorkerProbeTest, LeavesOutWhatNeedsNoMeasuring) {
  const SlowStorage few(199, SlowStorage::Doors::many);
  EXPECT_EQ(probe_workers(few, tiny_plan(), four_workers(0.1)).skipped, "the data is small");
  const SlowStorage enough(200, SlowStorage::Doors::many);
  WorkerProbeSettings one = four_workers(0.1);
  one.max_workers = 1;
  EXPECT_EQ(probe_workers(enough, tiny_plan(), one).skipped, "there is one CPU");
}

TEST(WorkerProbeTest, LeavesTroubleOfTheStorageToTraining) {
  class Breaking : public SlowStorage {
   public:
    Breaking() : SlowStorage(1000, Doors::many) {}
    std::string read_head(int64_t, int64_t, std::vector<uint8_t>&, SampleContent&) const override { return ""; }
  };
  Breaking storage;
  storage.breaks_ = true;
  const WorkerProbe probe = probe_workers(storage, tiny_plan(), four_workers(0.1));
  EXPECT_EQ(probe.skipped, "the disk is gone");
  EXPECT_TRUE(probe.rates.empty());
}

TEST(WorkerProbeTest, StopsWhenAskedTo) {
  const SlowStorage storage(1000, SlowStorage::Doors::many);
  core::request_stop(15);
  EXPECT_THROW(probe_workers(storage, tiny_plan(), four_workers(60)), core::StopRequested);
  core::request_stop(0);
}

}  // namespace
}  // namespace stoker::data
