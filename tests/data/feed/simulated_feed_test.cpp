// SPDX-License-Identifier: Apache-2.0
// The feed that copies ahead, on a simulated device: whatever the order in which the device does things, each batch has
// its own numbers; and faults of which the feed must be free are found here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "core/error.h"
#include "data/feed/device_feed.h"
#include "data/source.h"
#include "tests/simulated_device.h"

namespace stoker::data {
namespace {

using fixtures::DeviceFault;
using fixtures::SimulatedDevice;

constexpr int64_t kPlainSamples = 23, kPlainSide = 3;

/// STOKER_INTERLEAVINGS=10000 is the whole, for who changes the feed.
uint64_t interleavings() {
  const char* const given = std::getenv("STOKER_INTERLEAVINGS");
  return given ? std::strtoull(given, nullptr, 10) : 2'000;
}

/// Image i is of one colour, which encodes i; so do label and target.
class PlainImages : public LeafSource {
 public:
  PlainImages() {
    class_names_ = {"a"};
    target_names_ = {"number"};
    for (int64_t i = 0; i < kPlainSamples; ++i)
      pixels_.emplace_back(kPlainSide * kPlainSide * 3, static_cast<uint8_t>(10 * i + 3));
  }
  int64_t size() const override { return kPlainSamples; }
  int64_t label(int64_t index) const override { return index + 100; }
  void targets(int64_t index, float* out) const override { *out = static_cast<float>(index) + 0.5F; }
  std::string name(int64_t index) const override { return std::to_string(index); }
  std::string relative_name(int64_t index) const override { return name(index); }
  std::string read(int64_t index, std::vector<uint8_t>&, SampleContent& content) const override {
    const std::vector<uint8_t>& pixels = pixels_[static_cast<size_t>(index)];
    content.bytes = pixels.data();
    content.size = pixels.size();
    content.height = content.width = kPlainSide;
    content.channels = 3;
    return "";
  }

 private:
  std::vector<std::vector<uint8_t>> pixels_;
};

/// The input of the network, read by the stream that computes, late.
struct Seen {
  std::vector<int64_t> samples;
  torch::Tensor images, labels, targets;
};

bool is_right(const Seen& seen) {
  for (size_t row = 0; row < seen.samples.size(); ++row) {
    const int64_t sample = seen.samples[row], i = static_cast<int64_t>(row);
    const float wanted = (static_cast<float>(10 * sample + 3) / 255 - 0.5F) / 0.25F;
    const float low = seen.images[i].min().item<float>(), high = seen.images[i].max().item<float>();
    if (std::abs(low - wanted) > 1e-5 || std::abs(high - wanted) > 1e-5) return false;
    if (seen.labels[i].item<int64_t>() != sample + 100) return false;
    if (seen.targets[i][0].item<float>() != static_cast<float>(sample) + 0.5F) return false;
  }
  return true;
}

class Watched {
 public:
  Watched() {
    SimulatedDevice::instance().begin(0, DeviceFault::none);
    TransformPlan plan;
    plan.shape = square_shape(kPlainSide, 3);
    plan.eval_crop = config::EvalCrop::none;
    LoaderSettings settings;
    settings.batch_size = 4;
    settings.num_workers = 2;
    settings.prefetch_factor = 2;
    settings.shuffle = true;
    FeedSettings feed_settings;
    feed_settings.device = SimulatedDevice::device();
    feed_settings.mean = {0.5, 0.5, 0.5};
    feed_settings.std = {0.25, 0.25, 0.25};
    feed_.emplace(std::make_shared<Loader>(std::make_shared<PlainImages>(), plan, settings), feed_settings);
  }
  ~Watched() {
    SimulatedDevice::instance().begin(0, DeviceFault::none);
    feed_.reset();
  }
  Watched& operator=(Watched&&) = delete;  // not copied, not moved

  /// Whether an epoch that is given up after some batches and a whole one behind it, the device's work in the order of
  /// `seed`, gave what they should.
  bool is_right_in(uint64_t seed, DeviceFault fault) {
    SimulatedDevice& device = SimulatedDevice::instance();
    device.begin(seed, fault);
    std::vector<Seen> all;
    try {
      take_batches(2 * seed, seed % 7, all);
      take_batches(2 * seed + 1, kPlainSamples, all);
    } catch (const core::Error&) {  // more batches are held than the loader allows
      device.finish();              // it writes to what was seen
      return false;
    }
    device.finish();
    return std::all_of(all.begin(), all.end(), is_right);
  }

 private:
  void take_batches(uint64_t epoch, uint64_t most, std::vector<Seen>& all) {
    feed_->begin_epoch(static_cast<int64_t>(epoch));
    Batch batch;
    for (uint64_t i = 0; i < most && feed_->next(batch); ++i) {
      const auto late = [](const torch::Tensor& tensor) {  // to() would ask LibTorch 2.x for pinned memory
        const auto on_cpu = tensor.options().device(torch::kCPU);
        return torch::empty_strided(tensor.sizes(), tensor.strides(), on_cpu).copy_(tensor, /*non_blocking=*/true);
      };
      all.push_back({batch.samples, late(batch.images), late(batch.labels), late(batch.targets)});
      if (epoch % 3 == 0) SimulatedDevice::instance().run_pending();
    }
  }

  std::optional<DeviceFeed> feed_;
};

TEST(SimulatedFeedTest, EveryBatchHasItsNumbersInAnyOrderOfThings) {
  Watched watched;
  for (uint64_t seed = 1; seed <= interleavings(); ++seed) {
    ASSERT_TRUE(watched.is_right_in(seed, DeviceFault::none)) << "interleaving " << seed;
  }
}

TEST(SimulatedFeedTest, PlantedFaultsAreFound) {
  const std::pair<DeviceFault, const char*> faults[] = {
      {DeviceFault::no_wait, "the wait for the copy is missing"},
      {DeviceFault::wait_forgotten, "the wait for the copy is missing now and then"},
      {DeviceFault::done_too_early, "buffers are given back before they are copied"},
      {DeviceFault::done_early_sometimes, "buffers are given back before they are copied now and then"},
      {DeviceFault::no_record_stream, "record_stream is missing"},
      {DeviceFault::labels_not_recorded, "record_stream is missing for labels"},
      {DeviceFault::recorded_for_copying, "record_stream names the stream of copies"},
      {DeviceFault::no_synchronisation, "the wait for the stream of copies is missing"},
      {DeviceFault::event_on_wrong_stream, "the event is recorded on the stream that computes"},
      {DeviceFault::copies_on_wrong_stream, "copies are queued on the stream that computes"},
  };
  for (const auto& [fault, name] : faults) {
    Watched watched;
    uint64_t found = 0;
    for (uint64_t seed = 1; found == 0 && seed <= interleavings(); ++seed) {
      if (!watched.is_right_in(seed, fault)) found = seed;
    }
    std::printf("%s: found by interleaving %llu\n", name, static_cast<unsigned long long>(found));
    EXPECT_GT(found, 0U) << name;
  }
}

}  // namespace
}  // namespace stoker::data
