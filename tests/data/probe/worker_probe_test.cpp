// SPDX-License-Identifier: Apache-2.0
#include "data/probe/worker_probe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <utility>

#include "core/error.h"
#include "core/system/stop_signal.h"
#include "data/source.h"
#include "made_data.h"

namespace stoker::data {
namespace {

/// One small file many times over.
class OneFile : public LeafSource, private StoredSamples {
 public:
  explicit OneFile(int64_t size) : size_(size) { file_ = jpeg_of(pattern_pixels(8, 8, 3), 8, 8); }

  int64_t size() const override { return size_; }
  int64_t label(int64_t) const override { return 0; }
  std::string name(int64_t) const override { return "one"; }
  std::string relative_name(int64_t) const override { return "one"; }
  const StoredSamples* stored() const override { return this; }
  int64_t stored_bytes(int64_t) const override { return static_cast<int64_t>(file_.size()); }
  std::string read_head(int64_t index, int64_t, std::vector<uint8_t>& buffer, SampleContent& content) const override {
    return read(index, buffer, content);
  }
  std::vector<int64_t> run_ends() const override { return {size()}; }
  std::string read(int64_t, std::vector<uint8_t>&, SampleContent& content) const override {
    content.bytes = file_.data();
    content.size = file_.size();
    return "";
  }

 private:
  const int64_t size_;
  Bytes file_;
};

/// Holds every reader until the clock that belongs to it lets them continue.
class HeldStorage : public OneFile {
 public:
  HeldStorage() : OneFile(1000) {}

  std::string read(int64_t index, std::vector<uint8_t>& buffer, SampleContent& content) const override {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      ++readers_;
      const int64_t round = round_;
      changed_.notify_all();
      changed_.wait(lock, [&] { return is_open_ || round_ != round; });
    }
    return OneFile::read(index, buffer, content);
  }

  std::string read_head(int64_t index, int64_t, std::vector<uint8_t>& buffer, SampleContent& content) const override {
    return OneFile::read(index, buffer, content);
  }

  /// Lets the readers go when there are as many as that; returns how many there were. A minute at most.
  int64_t let_go(int64_t least) const {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, std::chrono::minutes(1), [&] { return readers_ >= least; });
    ++round_;
    changed_.notify_all();
    return std::exchange(readers_, 0);
  }
  /// Holds nobody from now on.
  void open() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable int64_t readers_ = 0, round_ = 0;
  mutable bool is_open_ = false;
};

/// A second passes when as many workers as are due wait in the storage.
class ClockOfWorkers : public core::Clock {
 public:
  ClockOfWorkers(const HeldStorage& storage, std::vector<int64_t> due) : storage_(storage), due_(std::move(due)) {}

  double now() const override { return static_cast<double>(seen_.size()); }
  void sleep(double) const override {
    const size_t sleeps = seen_.size();
    seen_.push_back(storage_.let_go(sleeps < due_.size() ? due_[sleeps] : 0));
    if (seen_.size() == due_.size()) storage_.open();
  }
  const std::vector<int64_t>& seen() const { return seen_; }

 private:
  const HeldStorage& storage_;
  const std::vector<int64_t> due_;
  mutable std::vector<int64_t> seen_;
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

/// The choice among 1 to 4 workers, given the samples a second of each number of them.
int64_t choice_given(const std::function<double(int64_t workers)>& rate) {
  const std::vector<int64_t> counts = worker_counts(4);
  const std::vector<double> best = better_of_two(counts, 1, [&](int64_t workers, double) { return rate(workers); });
  std::vector<WorkerRate> rates;
  for (size_t i = 0; i < counts.size(); ++i) rates.push_back({counts[i], best[i]});
  return best_workers(rates);
}

TEST(WorkerProbeTest, FindsThatMoreWorkersHelpAsLongAsTheyDo) {
  EXPECT_EQ(choice_given([](int64_t workers) { return 490.0 * static_cast<double>(workers); }), 4);
  EXPECT_EQ(choice_given([](int64_t workers) { return 490.0 * static_cast<double>(std::min<int64_t>(workers, 2)); }),
            2);
}

TEST(WorkerProbeTest, FindsThatMoreWorkersDoNotHelpWhereTheStorageIsTheLimit) {
  EXPECT_EQ(choice_given([](int64_t) { return 490.0; }), 1);
}

TEST(WorkerProbeTest, TriesPowersOfTwoAndAllThatThereAre) {
  EXPECT_EQ(worker_counts(1), std::vector<int64_t>({1}));
  EXPECT_EQ(worker_counts(4), std::vector<int64_t>({1, 2, 4}));
  EXPECT_EQ(worker_counts(6), std::vector<int64_t>({1, 2, 4, 6}));
}

TEST(WorkerProbeTest, MeasuresUpwardsAndDownwardsAndKeepsTheBetter) {
  const std::vector<double> given = {100, 200, 300, 310, 150, 120};
  std::vector<int64_t> asked;
  const std::vector<double> best = better_of_two({1, 2, 4}, 1.2, [&](int64_t workers, double seconds) {
    EXPECT_NEAR(seconds, 0.2, 1e-12);
    asked.push_back(workers);
    return given.at(asked.size() - 1);
  });
  EXPECT_EQ(asked, std::vector<int64_t>({1, 2, 4, 4, 2, 1}));
  EXPECT_EQ(best, std::vector<double>({120, 200, 310}));
}

TEST(WorkerProbeTest, AsManyThreadsReadAsAreMeasured) {
  const HeldStorage storage;
  // Each measurement sleeps before it and during it.
  const ClockOfWorkers clock(storage, {1, 1, 2, 2, 4, 4, 4, 4, 2, 2, 1, 1});
  WorkerProbeSettings settings = four_workers(1);
  settings.clock = &clock;
  const WorkerProbe probe = probe_workers(storage, tiny_plan(), settings);
  ASSERT_EQ(clock.seen().size(), 12u);
  EXPECT_EQ(std::vector<int64_t>(clock.seen().begin(), clock.seen().begin() + 8),
            std::vector<int64_t>({1, 1, 2, 2, 4, 4, 4, 4}));
  ASSERT_EQ(probe.rates.size(), 3u);
  EXPECT_EQ(probe.rates[1].workers, 2);
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
  const OneFile few(199);
  EXPECT_EQ(probe_workers(few, tiny_plan(), four_workers(0.1)).skipped, "the data is small");
  const OneFile enough(200);
  WorkerProbeSettings one = four_workers(0.1);
  one.max_workers = 1;
  EXPECT_EQ(probe_workers(enough, tiny_plan(), one).skipped, "there is one CPU");
}

TEST(WorkerProbeTest, LeavesStorageErrorsToTraining) {
  class Breaking : public OneFile {
   public:
    Breaking() : OneFile(1000) {}
    std::string read_head(int64_t, int64_t, std::vector<uint8_t>&, SampleContent&) const override { return ""; }
    std::string read(int64_t, std::vector<uint8_t>&, SampleContent&) const override {
      has_failed = true;
      throw core::Error(core::ErrorKind::io, "the disk is gone");
    }
    mutable std::atomic<bool> has_failed{false};
  };
  /// Time passes once the storage has failed.
  class ClockOfFailure : public core::Clock {
   public:
    explicit ClockOfFailure(const Breaking& storage) : storage_(storage) {}
    void sleep(double) const override {
      while (!storage_.has_failed) core::Clock::sleep(0.001);
    }

   private:
    const Breaking& storage_;
  };
  const Breaking storage;
  const ClockOfFailure clock(storage);
  WorkerProbeSettings settings = four_workers(0.1);
  settings.clock = &clock;
  const WorkerProbe probe = probe_workers(storage, tiny_plan(), settings);
  EXPECT_EQ(probe.skipped, "the disk is gone");
  EXPECT_TRUE(probe.rates.empty());
}

TEST(WorkerProbeTest, StopsWhenAskedTo) {
  const OneFile storage(1000);
  core::request_stop(15);
  EXPECT_THROW(probe_workers(storage, tiny_plan(), four_workers(60)), core::StopRequested);
  core::request_stop(0);
}

}  // namespace
}  // namespace stoker::data
