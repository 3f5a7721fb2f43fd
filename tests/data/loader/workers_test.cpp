// SPDX-License-Identifier: Apache-2.0
// Workers, the ring that they fill, and how an epoch ends before its time.
#include "data/loader/loader.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <mutex>
#include <set>
#include <thread>

#include "core/system/stop_signal.h"
#include "loader/made_source.h"

namespace stoker::data {
namespace {

using namespace loader_tests;

TEST(LoaderWorkersTest, ANewEpochDropsWhatWasUnderWay) {
  const auto source = std::make_shared<MadeSource>(43, /*encoded=*/false);
  for (const int workers : {0, 1, 7}) {
    Loader loader(source, small_plan(), small_settings(workers, 2));
    const std::string expected = epoch_digest(loader, 5);
    for (int consumed = 0; consumed < 20; ++consumed) {
      loader.begin_epoch(consumed);
      HostBatch held;
      for (int i = 0; i < consumed % 4; ++i) {
        ASSERT_TRUE(loader.next(held));
        if (i + 1 < consumed % 4) loader.release(held);
      }
      if (consumed % 2 == 0) {
        ASSERT_EQ(epoch_digest(loader, 5), expected);
        loader.release(held);  // of an epoch that is over: nothing happens
      }
    }
  }
}

TEST(LoaderWorkersTest, AnEpochThatNobodyFinishesEndsWithinOneSamplePerWorker) {
  // The first eight samples are read at once; the others end some time after the loader is stopped.
  std::atomic<int> reads{0};
  std::atomic<bool> ending{false};
  const auto source = std::make_shared<MadeSource>(400, false, [&](int64_t) {
    if (++reads <= 8) return "";
    while (!ending) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    return "";
  });
  {
    Loader loader(source, small_plan(), small_settings(4, 8));
    loader.begin_epoch(0);
    while (reads.load() < 8 + 4) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ending = true;
  }
  EXPECT_EQ(reads.load(), 8 + 4);
}

TEST(LoaderWorkersTest, AStopRequestEndsTheWaitUnlessTheBatchIsNeeded) {
  std::atomic<bool> blocked{true};
  const auto source = std::make_shared<MadeSource>(43, false, [&](int64_t) {
    while (blocked) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return "";
  });
  Loader loader(source, small_plan(), small_settings(2, 2));
  loader.begin_epoch(0);
  core::request_stop(SIGTERM);
  HostBatch batch;
  EXPECT_THROW(loader.next(batch), core::StopRequested);
  std::thread unblock([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(80));
    blocked = false;
  });
  EXPECT_TRUE(loader.next(batch, /*may_stop=*/false));
  EXPECT_EQ(batch.images.size(0), 8);
  unblock.join();
  Loader here(source, small_plan(), small_settings(0, 2));
  here.begin_epoch(0);
  EXPECT_THROW(here.next(batch), core::StopRequested);
  EXPECT_TRUE(here.next(batch, /*may_stop=*/false));
  core::request_stop(0);
}

TEST(LoaderWorkersTest, WithoutWorkersTheCallingThreadReads) {
  std::mutex mutex;
  std::set<std::thread::id> readers;
  std::set<std::string> names;
  const auto source = std::make_shared<MadeSource>(43, false, [&](int64_t) {
    char name[16] = "";
    ::prctl(PR_GET_NAME, name, 0, 0, 0);
    const std::lock_guard<std::mutex> lock(mutex);
    readers.insert(std::this_thread::get_id());
    names.insert(name);
    return "";
  });
  Loader here(source, small_plan(), small_settings(0, 2));
  epoch_digest(here, 0);
  EXPECT_EQ(readers, std::set<std::thread::id>({std::this_thread::get_id()}));
  readers.clear();
  names.clear();
  Loader loader(source, small_plan(), small_settings(1, 2));
  epoch_digest(loader, 0);
  EXPECT_EQ(readers.count(std::this_thread::get_id()), 0u);
  EXPECT_EQ(names, std::set<std::string>({"loader-0"}));
}

TEST(LoaderWorkersTest, MemoryDoesNotGrowWithWorkers) {
  const auto source = std::make_shared<MadeSource>(43, /*encoded=*/false);
  Loader one(source, small_plan(), small_settings(1, 4)), many(source, small_plan(), small_settings(16, 4));
  EXPECT_EQ(one.stats().ring_bytes, 5 * 8 * (16 * 16 * 3 + 8));
  EXPECT_EQ(many.stats().ring_bytes, one.stats().ring_bytes);
  EXPECT_EQ(many.stats().batches_capacity, 5);
  EXPECT_EQ(many.stats().num_workers, 16);
}

TEST(LoaderWorkersTest, WorkersFillTheRingAheadAndThenWait) {
  std::atomic<int> reads{0};
  const auto source = std::make_shared<MadeSource>(80, false, [&](int64_t) {
    ++reads;
    return "";
  });
  Loader loader(source, small_plan(), small_settings(2, 3));
  loader.begin_epoch(0);
  while (loader.stats().batches_ready < 4) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // in which a worker would read on that should wait
  EXPECT_EQ(reads.load(), 4 * 8);
  EXPECT_TRUE(loader.is_ready());
  HostBatch batch;
  loader.next(batch);
  loader.release(batch);
  while (loader.stats().batches_ready < 4) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(reads.load(), 5 * 8);
  EXPECT_EQ(loader.stats().images, 8);
  // The time that a worker waited is counted once it runs again.
  while (loader.stats().worker_idle_seconds == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST(LoaderWorkersTest, TimeIsSplitOverTheStages) {
  Loader files(std::make_shared<MadeSource>(40, /*encoded=*/true), small_plan(), small_settings(1, 2));
  epoch_digest(files, 0);
  EXPECT_GT(files.stats().read_seconds, 0);
  EXPECT_GT(files.stats().decode_seconds, 0);
  EXPECT_GT(files.stats().resize_seconds, 0);
  Loader pixels(std::make_shared<MadeSource>(40, /*encoded=*/false), small_plan(), small_settings(1, 2));
  epoch_digest(pixels, 0);
  EXPECT_EQ(pixels.stats().decode_seconds, 0);
  EXPECT_GT(pixels.stats().resize_seconds, 0);
  EXPECT_EQ(pixels.stats().write_seconds, 0);
  TransformPlan plan = small_plan();
  plan.train_crop = config::TrainCrop::none;
  plan.shape = square_shape(20, 3);
  Loader copies(std::make_shared<MadeSource>(1, /*encoded=*/false), plan, small_settings(1, 2));  // of 20 x 20
  epoch_digest(copies, 0);
  EXPECT_EQ(copies.stats().resize_seconds, 0);
  EXPECT_GT(copies.stats().write_seconds, 0);
}

TEST(LoaderWorkersTest, HoldingTooManyBatchesOrReleasingOutOfOrderIsABug) {
  const auto source = std::make_shared<MadeSource>(80, /*encoded=*/false);
  for (const int workers : {0, 2}) {
    Loader loader(source, small_plan(), small_settings(workers, 3));
    loader.begin_epoch(0);
    HostBatch first, second, third, fourth;
    loader.next(first);
    loader.next(second);
    loader.next(third);
    EXPECT_EQ(error_of([&] { loader.next(fourth); }).kind(), core::ErrorKind::bug);
    EXPECT_EQ(error_of([&] { loader.release(second); }).kind(), core::ErrorKind::bug);
    loader.release(first);
    EXPECT_EQ(error_of([&] { loader.release(first); }).kind(), core::ErrorKind::bug);
    EXPECT_TRUE(loader.next(fourth));
  }
}

TEST(LoaderWorkersTest, BatchesThatAreHeldKeepTheirPixels) {
  const auto source = std::make_shared<MadeSource>(80, /*encoded=*/false);
  Loader loader(source, small_plan(), small_settings(4, 3));
  loader.begin_epoch(0);
  HostBatch first, second;
  loader.next(first);
  const torch::Tensor before = first.images.clone();
  loader.next(second);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(torch::equal(before, first.images));
}

}  // namespace
}  // namespace stoker::data
