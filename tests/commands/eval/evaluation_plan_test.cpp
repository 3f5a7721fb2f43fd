// SPDX-License-Identifier: Apache-2.0
#include "commands/eval/loaded_model.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "data/source.h"
#include "plan/memory_plan.h"
#include "tests/config/resolved_words.h"
#include "train/setup/assemble.h"
#include "train/setup/plan_run.h"

namespace stoker::train {
namespace {

constexpr int64_t kImages = 8, kSide = 256;
constexpr int64_t kFree = 300'000'000;

/// Images that nothing reads.
class UnreadImages : public data::LeafSource {
 public:
  explicit UnreadImages(int64_t count) : count_(count) {}
  int64_t size() const override { return count_; }
  int64_t label(int64_t) const override { return 0; }
  std::string name(int64_t) const override { return "image"; }
  std::string relative_name(int64_t) const override { return "image"; }
  std::string read(int64_t, std::vector<uint8_t>&, data::SampleContent&) const override { return "not there"; }

 private:
  const int64_t count_;
};

/// Two classes; its convolution has `channels` channels.
class TriedNetwork : public model::ImageModel {
 public:
  explicit TriedNetwork(int64_t channels = 8, std::function<void()> fail = {}) : fail_(std::move(fail)) {
    register_parameter("weight", torch::zeros({channels, 1, 1, 1}));
  }
  torch::Tensor forward(torch::Tensor images) override {
    most_images = std::max(most_images, images.size(0));
    if (fail_) fail_();
    return images.mean({2, 3}).narrow(1, 0, 2);
  }
  std::string head_prefix() const override { return ""; }

  int64_t most_images = 0;

 private:
  std::function<void()> fail_;
};

struct PlannedEvaluation {
  plan::PlanInputs inputs;
  plan::MemoryBudget budget;

  fixtures::Failure refusal() const {
    const auto plan_of = [this](int64_t batch) {
      plan::PlanInputs changed = inputs;
      changed.batch_size = changed.val_batch_size = batch;
      return changed;
    };
    return fixtures::failure_of(
        [&] { plan::require_evaluation_memory(plan_of, inputs.val_batch_size, budget, /*plan_check=*/true); });
  }
};

PlannedEvaluation planned(model::ImageModel& model, int64_t batch, int64_t free, int64_t classes = 2) {
  config::ResolvedOptions options =
      fixtures::resolved(
          {"--num-classes", std::to_string(classes), "--in-chans", "3", "--img-size", std::to_string(kSide), "--device",
           "cpu", "--num-workers", "1", "--val-batch-size", std::to_string(batch)},
          {})
          .options;
  options.precision.amp = false;
  const UnreadImages source(std::max(batch, kImages));
  const auto task = build_task(options, torch::kCPU);
  PlannedEvaluation found;
  found.budget.host_held_bytes = settled_resident_bytes();
  found.budget.host_free_bytes = free;
  found.inputs = measure_evaluation({options, source, model, *task, torch::kCPU}, found.budget);
  return found;
}

TEST(EvaluationPlanTest, WhereMemoryRunsOutWhileImagesAreTriedTheBatchIsRefused) {
  TriedNetwork network(/*channels=*/8, [] { throw std::bad_alloc(); });
  const fixtures::Failure several = planned(network, kImages, kFree).refusal();
  EXPECT_EQ(several.kind, core::ErrorKind::out_of_memory) << several.message;
  EXPECT_NE(several.hint.find("this fits: --val-batch-size 1;"), std::string::npos) << several.hint;
  network.most_images = 0;
  const fixtures::Failure one = planned(network, /*batch=*/1, kFree).refusal();
  EXPECT_EQ(network.most_images, 1) << "no more are tried than the batch has";
  EXPECT_EQ(one.kind, core::ErrorKind::out_of_memory) << one.message;
  EXPECT_NE(one.hint.find("not even one image fits"), std::string::npos) << one.hint;
}

TEST(EvaluationPlanTest, AFailureOfAnotherKindIsLeftToTheEvaluation) {
  TriedNetwork network(/*channels=*/8, [] { throw std::runtime_error("no"); });
  const PlannedEvaluation found = planned(network, kImages, kFree);
  EXPECT_GT(network.most_images, 0);
  EXPECT_GT(found.inputs.evaluation_bytes(kImages), kImages * found.inputs.input_bytes) << "with the outputs";
  EXPECT_LT(found.inputs.evaluation_bytes(kImages), 2 * kImages * found.inputs.input_bytes);
  EXPECT_EQ(found.refusal().message, "");
}

TEST(EvaluationPlanTest, WhereTheInputsAloneAreTooMuchTheNetworkIsTriedAllTheSame) {
  TriedNetwork network;
  const PlannedEvaluation found = planned(network, /*batch=*/400, /*free=*/100'000'000);  // 315 MB of inputs
  EXPECT_GT(network.most_images, 0) << "an advice without what the network holds would be too much";
  const fixtures::Failure refusal = found.refusal();
  EXPECT_EQ(refusal.kind, core::ErrorKind::out_of_memory) << refusal.message;
  EXPECT_NE(refusal.hint.find("this fits: --val-batch-size "), std::string::npos) << refusal.hint;
}

TEST(EvaluationPlanTest, AConfusionMatrixCountsWhereThereIsOne) {
  TriedNetwork network;
  const auto bytes = [&](int64_t classes) {
    return planned(network, kImages, /*free=*/10'000'000'000, classes).inputs.result_bytes;
  };
  EXPECT_GT(bytes(1000) - bytes(2), 3 * 8 * 1000 * 1000);
  EXPECT_GT(bytes(100'000) - bytes(2), 100'000'000) << "a row of a table and names each";
  EXPECT_LT(bytes(100'000) - bytes(2), 150'000'000) << "and no matrix, which would be 80 GB";
}

TEST(EvaluationPlanTest, AWideNetworkIsTriedWhereMemoryIsPlenty) {
  constexpr int64_t kPlenty = 10'000'000'000;
  TriedNetwork usual;
  planned(usual, kImages, kPlenty);
  EXPECT_EQ(usual.most_images, 0) << "512 times its input would fit";
  TriedNetwork wide(/*channels=*/2048);
  const PlannedEvaluation found = planned(wide, kImages, kPlenty);
  EXPECT_GT(wide.most_images, 0);
  EXPECT_GT(found.inputs.evaluation_bytes(kImages), kImages * found.inputs.input_bytes);
}

}  // namespace
}  // namespace stoker::train
