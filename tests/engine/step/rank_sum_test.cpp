// SPDX-License-Identifier: Apache-2.0
// Gradients that are exchanged while others are computed are bit-identical to those that are not.
#include "engine/step/rank_sum.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "engine/step/gradient_hooks.h"
#include "tests/engine/step/replica_run.h"

namespace stoker::engine {
namespace {

/// Small ones at both ends, and two that are larger than a bucket.
std::vector<at::Tensor> tensors_of(int rank) {
  const at::Generator random = at::make_generator<at::CPUGeneratorImpl>(static_cast<uint64_t>(5 + rank));
  std::vector<at::Tensor> tensors;
  for (const int64_t rows : {3, 40'000, 1, 700'000, 90'000, 7}) {
    tensors.push_back(at::randn({rows, 2}, random, at::kFloat).mul(at::randn({1}, random, at::kFloat).mul(8).exp()));
  }
  tensors.push_back(at::randn({2, 3, 4, 4}, random, at::kFloat).contiguous(at::MemoryFormat::ChannelsLast));
  tensors.push_back(at::randn({5}, random, at::kFloat));   // a buffer
  tensors.push_back(at::randn({5}, random, at::kDouble));  // another
  return tensors;
}
constexpr size_t kParameters = 7;

TEST(RankSumTest, BucketsHaveEachTensorOnceAndTheLastIsSmall) {
  const std::vector<at::Tensor> tensors = tensors_of(0);
  const std::vector<Bucket> buckets = buckets_of(tensors, kParameters);
  std::set<size_t> seen;
  for (const Bucket& bucket : buckets) {
    for (const size_t i : bucket.tensors) {
      EXPECT_TRUE(seen.insert(i).second);
      EXPECT_EQ(tensors[i].scalar_type(), tensors[bucket.tensors.front()].scalar_type());
    }
  }
  EXPECT_EQ(seen.size(), tensors.size());
  EXPECT_GE(buckets.size(), 4u);
  EXPECT_EQ(buckets.front().tensors.back(), kParameters - 1) << "the backward pass comes to the last parameters first";
  EXPECT_LE(buckets.back().bytes, 256 * 1024);
  EXPECT_EQ(buckets.back().tensors.front(), kParameters) << "buffers are known when all is";
}

TEST(RankSumTest, SumsHaveTheBitsOfTheGroupInWhateverOrderTensorsAreReady) {
  for (const int ranks : {2, 3, 4}) {
    std::vector<std::vector<at::Tensor>> expected, got(static_cast<size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
      expected.push_back(tensors_of(rank));
      expected.back()[1].zero_();
    }
    run_ranks(ranks, [&](Group& group) { group.sum(expected[static_cast<size_t>(group.rank())]); });
    const auto thrown = run_ranks(ranks, [&](Group& group) {
      const std::vector<at::Tensor> own = tensors_of(group.rank());
      RankSum sum(group, own, kParameters, RankSum::Order::exact);
      std::mt19937 random(static_cast<unsigned>(group.rank()));
      for (int update = 0; update < 4; ++update) {
        sum.begin([&](size_t i) { return own[i]; });
        std::vector<size_t> order;
        for (size_t i = 0; i < own.size(); ++i) {
          if (i != 1) order.push_back(i);
        }
        std::shuffle(order.begin(), order.end(), random);
        for (const size_t i : order) sum.ready(i);
        sum.fill_with_zeros();
        sum.wait();
      }
      for (size_t i = 0; i < own.size(); ++i) got[static_cast<size_t>(group.rank())].push_back(sum.sum_of(i).clone());
    });
    for (int rank = 0; rank < ranks; ++rank) {
      ASSERT_FALSE(thrown[static_cast<size_t>(rank)]);
      const auto& of_rank = got[static_cast<size_t>(rank)];
      for (size_t i = 0; i < of_rank.size(); ++i) {
        EXPECT_TRUE(at::equal(of_rank[i], expected[static_cast<size_t>(rank)][i])) << ranks << " ranks, tensor " << i;
        EXPECT_EQ(of_rank[i].strides(), tensors_of(0)[i].strides());
      }
    }
  }
}

/// Reports when a sum is requested.
class HeardGroup : public Group {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }
  void sum(const std::vector<at::Tensor>&) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++sums_;
    if (sums_ == fails_at) throw core::Error(core::ErrorKind::peer_lost, "rank 1 is gone");
    changed_.notify_all();
  }
  std::string from_root(const std::string& bytes) override { return bytes; }
  std::vector<std::string> gather(const std::string& bytes) override { return {bytes, bytes}; }
  bool abort(const std::string&) noexcept override { return true; }
  bool wait_for_sums(int count) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return sums_ >= count; });
  }
  int sums() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return sums_;
  }
  int fails_at = 0;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int sums_ = 0;
};

/// The stream of whoever computes: what is queued there happens no sooner than somebody waits for a mark behind it.
class LazyStream : public StreamOrder {
 public:
  void queue(std::function<void()> work) {
    const std::lock_guard<std::mutex> lock(mutex_);
    queued_.push_back(std::move(work));
  }
  void set(size_t mark) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    EXPECT_FALSE(is_exchanging) << "the mark is in the stream of the thread that computes";
    marks_[mark] = queued_.size();
  }
  void wait(size_t mark) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    EXPECT_TRUE(is_exchanging);
    for (; done_ < marks_[mark]; ++done_) queued_[done_]();
  }
  void finish() override {}
  void on_own_stream(const std::function<void()>& work) override {
    is_exchanging = true;
    work();
    is_exchanging = false;
  }
  static thread_local bool is_exchanging;

 private:
  std::mutex mutex_;
  std::vector<std::function<void()>> queued_;
  size_t done_ = 0;
  std::map<size_t, size_t> marks_;  ///< how much is queued before each
};
thread_local bool LazyStream::is_exchanging = false;

TEST(RankSumTest, OnADeviceTheExchangeComesAfterWhatItReadsAndAfterReadersOfTheSumsBefore) {
  std::vector<std::vector<at::Tensor>> expected = {tensors_of(0), tensors_of(1)};
  run_ranks(2, [&](Group& group) { group.sum(expected[static_cast<size_t>(group.rank())]); });
  const auto thrown = run_ranks(2, [&](Group& group) {
    auto made = std::make_unique<LazyStream>();
    LazyStream& stream = *made;
    const std::vector<at::Tensor> own = tensors_of(group.rank());
    RankSum sum(group, own, kParameters, RankSum::Order::exact, std::move(made));
    std::vector<at::Tensor> read(own.size());
    for (int update = 0; update < 3; ++update) {
      std::vector<at::Tensor> gradients;
      for (const at::Tensor& tensor : own) gradients.push_back(at::full_like(tensor, std::nan("")));
      sum.begin([&](size_t i) { return gradients[i]; });
      for (size_t i = own.size(); i-- > 0;) {
        stream.queue([&, i] { gradients[i].copy_(own[i]).mul_(1 << update); });
        sum.ready(i);
      }
      sum.wait();
      for (size_t i = 0; i < own.size(); ++i) {
        EXPECT_TRUE(at::equal(sum.sum_of(i), expected[0][i] * (1 << update))) << "tensor " << i;
        stream.queue([&, i] { read[i] = sum.sum_of(i).clone(); });  // by the optimizer, some time
      }
    }
    sum.begin([&](size_t i) { return own[i]; });
    sum.fill_with_zeros();
    sum.wait();
    for (size_t i = 0; i < own.size(); ++i) EXPECT_TRUE(at::equal(read[i], expected[0][i] * 4)) << "tensor " << i;
  });
  EXPECT_EQ(thrown, std::vector<std::exception_ptr>(2));
}

/// Notes where it is to add; tensors of the device "meta" have no numbers.
class PlacedGroup : public Group {
 public:
  explicit PlacedGroup(bool sums_there) : sums_there_(sums_there) {}
  int rank() const override { return 0; }
  int size() const override { return 2; }
  void sum(const std::vector<at::Tensor>& tensors) override {
    for (const at::Tensor& tensor : tensors) places.insert(tensor.device().str());
  }
  bool sums_on(const at::Device& device) override { return device.is_cpu() || sums_there_; }
  std::string from_root(const std::string& bytes) override { return bytes; }
  std::vector<std::string> gather(const std::string& bytes) override { return {bytes, bytes}; }
  bool abort(const std::string&) noexcept override { return true; }
  std::set<std::string> places;

 private:
  const bool sums_there_;
};

TEST(RankSumTest, BucketsLieOnTheDeviceWhereTheGroupAddsThereAndElseOnTheCpu) {
  std::vector<at::Tensor> like;
  for (const at::Tensor& tensor : tensors_of(0)) like.push_back(at::empty_like(tensor, at::Device(at::kMeta)));
  for (const bool sums_there : {true, false}) {
    PlacedGroup group(sums_there);
    RankSum sum(group, like, kParameters, RankSum::Order::exact, /*streams=*/nullptr);
    sum.begin([&](size_t i) { return sums_there ? like[i] : at::Tensor(); });
    sum.fill_with_zeros();
    sum.wait();
    EXPECT_EQ(group.places, std::set<std::string>{sums_there ? "meta" : "cpu"});
    EXPECT_EQ(sum.sum_of(0).device().str(), sums_there ? "meta" : "cpu");
  }
}

TEST(RankSumTest, ABucketIsExchangedWhileOthersAreStillComputed) {
  HeardGroup group;
  const std::vector<at::Tensor> own = tensors_of(0);
  RankSum sum(group, own, kParameters, RankSum::Order::exact);
  const std::vector<Bucket> buckets = buckets_of(own, kParameters);
  sum.begin([&](size_t i) { return own[i]; });
  for (size_t i : buckets[1].tensors) sum.ready(i);
  for (size_t i : buckets[0].tensors) {
    EXPECT_EQ(group.sums(), 0) << "all ranks have one order";
    sum.ready(i);
  }
  EXPECT_TRUE(group.wait_for_sums(2));
  for (size_t k = 2; k < buckets.size(); ++k) {
    for (size_t i : buckets[k].tensors) sum.ready(i);
  }
  sum.wait();
  EXPECT_EQ(group.sums(), static_cast<int>(buckets.size()));
}

TEST(RankSumTest, AnErrorReachesWhoeverWaitsAndTheNextUpdateIsFree) {
  HeardGroup group;
  group.fails_at = 2;
  const std::vector<at::Tensor> own = tensors_of(0);
  RankSum sum(group, own, kParameters, RankSum::Order::exact);
  const auto take = [&](size_t i) { return own[i]; };
  sum.begin(take);
  sum.fill_with_zeros();
  EXPECT_THROW(sum.wait(), core::Error);
  EXPECT_EQ(group.sums(), 2);
  sum.begin(take);
  sum.abandon();
  const int before = group.sums();
  sum.begin(take);
  for (size_t i = 0; i < own.size(); ++i) sum.ready(i);
  sum.wait();
  EXPECT_EQ(group.sums() - before, static_cast<int>(buckets_of(own, kParameters).size()));
}

TEST(GradientHooksTest, TheyCallWhenAParameterHasItsGradient) {
  torch::nn::Linear first(3, 4), second(4, 2);
  const std::vector<torch::Tensor> parameters = {first->weight, first->bias, second->weight, second->bias};
  GradientHooks hooks(parameters);
  std::vector<size_t> order;
  const auto pass = [&] { second(at::relu(first(at::ones({2, 3})))).sum().backward(); };
  pass();
  EXPECT_TRUE(order.empty());
  const at::Tensor once = parameters[2].grad().clone();
  hooks.arm([&](size_t i) {
    order.push_back(i);
    EXPECT_TRUE(parameters[i].grad().defined());
    if (i != 2) return;
    EXPECT_TRUE(at::equal(parameters[i].grad(), once * 2)) << "added to what was there";
  });
  pass();
  ASSERT_EQ(order.size(), 4u);
  EXPECT_GE(std::min(order[0], order[1]), 2u) << "the last layer comes first";
  hooks.disarm();
  pass();
  EXPECT_EQ(order.size(), 4u);
}

TEST(ReplicasTest, GradientsThatAreExchangedEarlyHaveTheSameBits) {
  for (const int64_t replicas : {2, 4, 8}) {
    Computed setup{replicas, /*accumulation=*/3};
    setup.batches = 45;
    setup.empty = {4, 5, 16, 40, 41, 42, 43};
    setup.overlap = false;
    const End alone = trained(setup)[0];
    setup.ranks = 2;
    for (const bool overlap : {false, true}) {
      setup.overlap = overlap;
      for (const End& end : trained(setup)) expect_same(end, alone, std::to_string(replicas) + " replicas");
    }
  }
}

}  // namespace
}  // namespace stoker::engine
