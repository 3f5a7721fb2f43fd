// SPDX-License-Identifier: Apache-2.0
#include "engine/step/step_timer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <memory>
#include <thread>

#include "core/text/json.h"
#include "core/time/clock.h"
#include "core/time/trace.h"
#include "data/source.h"

namespace stoker::engine {
namespace {

using std::chrono::milliseconds;

/// Samples that take 2 ms each, and none before somebody has asked the loader, where one is set, for a batch.
class SlowSource : public data::LeafSource {
 public:
  SlowSource() { class_names_ = {"a", "b"}; }
  int64_t size() const override { return 40; }
  int64_t label(int64_t index) const override { return index % 2; }
  std::string name(int64_t index) const override { return std::to_string(index); }
  std::string relative_name(int64_t index) const override { return name(index); }
  std::string read(int64_t, std::vector<uint8_t>& buffer, data::SampleContent& content) const override {
    const data::Loader* const asked = asked_;
    do {
      std::this_thread::sleep_for(milliseconds(2));
    } while (asked && asked->stats().batches_requested == 0);
    buffer.assign(16, 7);
    content.bytes = buffer.data();
    content.size = 16;
    content.height = content.width = 4;
    content.channels = 1;
    return "";
  }

  std::atomic<const data::Loader*> asked_{nullptr};
};

data::Loader slow_loader(int64_t workers, const std::shared_ptr<SlowSource>& source = std::make_shared<SlowSource>()) {
  data::TransformPlan plan;
  plan.shape = data::square_shape(4, 1);
  data::LoaderSettings settings;
  settings.batch_size = 4;
  settings.num_workers = workers;
  return data::Loader(source, plan, settings);
}

/// One update as the trainer makes it: a batch, forward, backward, optimizer, and 3 ms of `after`.
void update(StepTimer& timer, data::Loader& loader, int64_t number, StepPart after) {
  timer.begin_update(number);
  data::HostBatch batch;
  ASSERT_TRUE(loader.next(batch));
  loader.release(batch);
  timer.fetched();
  std::this_thread::sleep_for(milliseconds(4));
  timer.done(StepPart::forward);
  std::this_thread::sleep_for(milliseconds(6));
  timer.done(StepPart::backward);
  timer.done(StepPart::optimizer);
  std::this_thread::sleep_for(milliseconds(3));
  timer.done(after);
}

TEST(StepTimerTest, EveryMomentOfAnUpdateBelongsToOnePart) {
  data::Loader loader = slow_loader(0);
  StepTimer timer(torch::Device(torch::kCPU), loader);
  loader.begin_epoch(0);
  timer.begin_epoch();
  for (int64_t i = 0; i < 5; ++i) update(timer, loader, i, StepPart::other);
  timer.end_epoch();
  const StepTimings times = timer.since_epoch_start();
  EXPECT_EQ(times.updates, 5);
  EXPECT_GE(times.parts[StepPart::wait].mean_seconds, 0.008);  // four samples of 2 ms
  EXPECT_GE(times.parts[StepPart::forward].mean_seconds, 0.004);
  EXPECT_GE(times.parts[StepPart::backward].mean_seconds, 0.006);
  EXPECT_GE(times.parts[StepPart::other].mean_seconds, 0.003);
  double sum = 0;
  for (const core::Spread& part : times.parts.spreads) sum += part.mean_seconds;
  EXPECT_NEAR(sum, times.update.mean_seconds, 1e-6);
  EXPECT_NEAR(times.seconds, 5 * times.update.mean_seconds, 1e-6);
  EXPECT_FALSE(times.has_device);
}

TEST(StepTimerTest, AnExchangeThatIsNotWaitedForIsHidden) {
  data::Loader loader = slow_loader(0);
  StepTimer timer(torch::Device(torch::kCPU), loader);
  timer.begin_epoch();
  for (int64_t i = 0; i < 4; ++i) {
    timer.begin_update(i);
    timer.done(StepPart::backward);
    std::this_thread::sleep_for(milliseconds(3));
    timer.done(StepPart::exchange);
    timer.exchanged(std::chrono::seconds(i + 1), /*bytes_sent=*/1000 * i);
  }
  timer.end_epoch();
  timer.exchanged(std::chrono::seconds(9), 9000);  // of no update
  const StepTimings times = timer.since_epoch_start();
  EXPECT_EQ(times.exchange.count, 4);
  EXPECT_DOUBLE_EQ(times.exchange.mean_seconds, 2.5);
  EXPECT_DOUBLE_EQ(times.exchanged_bytes, 1500);
  EXPECT_GE(times.parts[StepPart::exchange].mean_seconds, 0.003);
  EXPECT_NEAR(times.hidden_exchange_share(), 1 - times.parts[StepPart::exchange].mean_seconds / 2.5, 1e-12);
  EXPECT_EQ(StepTimings().hidden_exchange_share(), 0) << "nothing was exchanged";
}

TEST(StepTimerTest, SamplesAreTimedByStageAndTheQueueIsCounted) {
  const auto source = std::make_shared<SlowSource>();
  data::Loader loader = slow_loader(2, source);
  source->asked_ = &loader;
  StepTimer timer(torch::Device(torch::kCPU), loader);
  loader.begin_epoch(0);
  timer.begin_epoch();
  for (int64_t i = 0; i < 10; ++i) update(timer, loader, i, StepPart::other);
  timer.end_epoch();
  const StepTimings times = timer.since_epoch_start();
  EXPECT_EQ(times.sample.read.count, 40);
  EXPECT_GE(times.sample.read.mean_seconds, 0.002);
  EXPECT_GE(times.sample.read.max_seconds, times.sample.read.p95_seconds);
  EXPECT_EQ(times.loader.batches_requested, 10);
  EXPECT_GE(times.loader.empty_when_requested, 1) << "the first batch is made once it has been requested";
  EXPECT_LE(times.mean_queue(), 5);
  EXPECT_GT(times.process_cpu_seconds, 0);
}

TEST(StepTimerTest, AReportIsChargedToItsUpdateAndToTheWindowThatFollows) {
  data::Loader loader = slow_loader(0);
  StepTimer timer(torch::Device(torch::kCPU), loader);
  loader.begin_epoch(0);
  timer.begin_epoch();
  update(timer, loader, 0, StepPart::other);
  update(timer, loader, 1, StepPart::other);
  const StepTimings first = timer.since_report();
  EXPECT_EQ(first.updates, 1);  // the second is not over
  EXPECT_EQ(first.parts[StepPart::report].mean_seconds, 0);
  std::this_thread::sleep_for(milliseconds(5));
  timer.done(StepPart::report);
  update(timer, loader, 2, StepPart::other);
  const StepTimings second = timer.since_report();
  EXPECT_EQ(second.updates, 1);
  EXPECT_GE(second.parts[StepPart::report].mean_seconds, 0.005);
}

TEST(StepTimerTest, ValidationBelongsToNoUpdate) {
  data::Loader loader = slow_loader(0);
  StepTimer timer(torch::Device(torch::kCPU), loader);
  loader.begin_epoch(0);
  timer.begin_epoch();
  update(timer, loader, 0, StepPart::other);
  timer.end_epoch();
  std::this_thread::sleep_for(milliseconds(200));
  const auto begin = std::chrono::steady_clock::now();  // the timer may read its clock at any moment from here on
  timer.done(StepPart::save);
  timer.begin_epoch();
  loader.begin_epoch(1);
  update(timer, loader, 1, StepPart::other);
  timer.end_epoch();
  const double second_epoch = core::seconds_since(begin);
  const StepTimings times = timer.since_epoch_start();
  EXPECT_EQ(times.updates, 1);
  constexpr double kCoarseness = 1.1;  // Durations keep figures in classes, not each by itself
  EXPECT_LE(times.update.max_seconds, kCoarseness * second_epoch) << "what went before is no part of it";
}

/// A device that passes each mark `delay` after it was made, when the test lets it.
class PlayedTimeline : public DeviceTimeline {
 public:
  struct Script {
    std::deque<Mark> passed;
    std::vector<int> marks;
  };
  explicit PlayedTimeline(Script& script) : script_(script) {}
  void mark(int what) override { script_.marks.push_back(what); }
  bool take(Mark& mark) override {
    if (script_.passed.empty()) return false;
    mark = script_.passed.front();
    script_.passed.pop_front();
    return true;
  }

 private:
  Script& script_;
};

TEST(StepTimerTest, ADevicesPartsAreReadOnceItHasPassedThem) {
  data::Loader loader = slow_loader(0);
  PlayedTimeline::Script device;
  StepTimer timer(std::make_unique<PlayedTimeline>(device), loader);
  loader.begin_epoch(0);
  timer.begin_epoch();
  update(timer, loader, 0, StepPart::other);
  const StepTimings before = timer.since_epoch_start();
  EXPECT_TRUE(before.has_device);
  EXPECT_EQ(before.device[StepPart::forward].count, 0);

  // The device takes 5 ms until the first batch is there, then 10 ms for each part, and idles in between.
  auto time = std::chrono::steady_clock::now();
  for (const int what : device.marks) {
    const bool computes = what == static_cast<int>(StepPart::forward) || what == static_cast<int>(StepPart::backward) ||
                          what == static_cast<int>(StepPart::optimizer);
    time += computes ? milliseconds(10) : milliseconds(what == static_cast<int>(StepPart::wait) ? 5 : 0);
    device.passed.push_back({what, time});
  }
  timer.begin_update(1);
  device.passed.push_back({device.marks.back(), time + milliseconds(2)});
  const StepTimings after = timer.since_epoch_start();
  EXPECT_EQ(after.device[StepPart::forward].count, 1);
  EXPECT_NEAR(after.device[StepPart::wait].mean_seconds, 0.005, 1e-9);
  EXPECT_GE(after.lag_seconds, 0.013) << "the host came to the update's begin before it waited 13 ms in its parts";
  EXPECT_NEAR(after.device[StepPart::forward].mean_seconds, 0.010, 1e-9);
  EXPECT_NEAR(after.device[StepPart::backward].mean_seconds, 0.010, 1e-9);
  EXPECT_NEAR(after.device[StepPart::other].mean_seconds, 0.002, 1e-9) << "until the next one begins";
}

TEST(StepTimerTest, AnUpdateCostsADeviceFiveMarks) {
  data::Loader loader = slow_loader(0);
  PlayedTimeline::Script device;
  StepTimer timer(std::make_unique<PlayedTimeline>(device), loader);
  loader.begin_epoch(0);
  timer.begin_epoch();
  device.marks.clear();
  timer.begin_update(0);
  timer.fetched();
  for (const StepPart part :
       {StepPart::forward, StepPart::backward, StepPart::other, StepPart::optimizer, StepPart::other}) {
    timer.done(part);
  }
  timer.begin_update(1);
  EXPECT_EQ(device.marks.size(), 5 + 1) << "the last one begins the next update";
}

TEST(StepTimerTest, ATraceHasThePartsInsideTheirUpdate) {
  data::Loader loader = slow_loader(0);
  StepTimer timer(torch::Device(torch::kCPU), loader);
  core::begin_trace(1000);
  loader.begin_epoch(0);
  timer.begin_epoch();
  update(timer, loader, 41, StepPart::other);
  timer.end_epoch();
  const core::Json trace = core::parse_json(core::take_trace_json(), "trace");
  double begin = -1, end = -1;
  std::vector<std::string> inside;
  for (const core::Json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const double from = event["ts"], to = from + event["dur"].get<double>();
    if (event["name"] == "update") {
      EXPECT_EQ(event["args"]["number"], 41);
      begin = from;
      end = to;
    } else {
      EXPECT_GE(from, begin - 0.01) << event;
      EXPECT_LE(to, end + 0.01) << event;
      inside.push_back(event["name"]);
    }
  }
  for (const char* const name : {"wait", "sample", "read", "forward", "backward", "other"}) {
    EXPECT_NE(std::find(inside.begin(), inside.end(), name), inside.end()) << name;
  }
}

}  // namespace
}  // namespace stoker::engine
