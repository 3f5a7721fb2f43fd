// SPDX-License-Identifier: Apache-2.0
#include "engine/task/evaluate.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace stoker::engine {
namespace {

std::unique_ptr<Task> task_of(config::TaskKind kind, int64_t classes) {
  TaskSpec spec;
  spec.kind = kind;
  spec.num_classes = classes;
  return make_task(spec, torch::kCPU);
}

/// Logits whose softmax over two classes gives `probability` to class 0.
torch::Tensor logits(const std::vector<double>& probabilities) {
  torch::Tensor rows = torch::zeros({static_cast<int64_t>(probabilities.size()), 2});
  for (size_t i = 0; i < probabilities.size(); ++i) {
    rows[static_cast<int64_t>(i)][0] = std::log(probabilities[i] / (1 - probabilities[i]));
  }
  return rows;
}

data::Batch batch_of(const std::vector<int64_t>& samples, const std::vector<int64_t>& labels) {
  data::Batch batch;
  batch.samples = samples;
  batch.labels = torch::tensor(labels);
  batch.targets = torch::empty({static_cast<int64_t>(labels.size()), 0});
  return batch;
}

TEST(WorstSamplesTest, AreThoseWhoseTruthHadTheLeastProbabilityOfAllBatches) {
  const auto task = task_of(config::TaskKind::multiclass, 2);
  WorstSamples worst(*task, 2);
  worst.add(batch_of({10, 11, 12}, {0, 0, 0}), logits({0.9, 0.2, 0.6}));
  worst.add(batch_of({20, 21}, {0, 1}), logits({0.05, 0.3}));
  const std::vector<ShownSample> list = worst.read();
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].sample, 20);
  EXPECT_NEAR(list[0].error, 0.95, 1e-5);
  EXPECT_NEAR(list[0].predicted[1], 0.95, 1e-5);
  EXPECT_EQ(list[1].sample, 11);
}

TEST(WorstSamplesTest, OfNumbersAreTheFarthestFromTheirTargets) {
  TaskSpec spec;
  spec.kind = config::TaskKind::regression;
  spec.num_classes = 1;
  spec.options.target_mean = {0};
  spec.options.target_scale = {1};
  const auto task = make_task(spec, torch::kCPU);
  WorstSamples worst(*task, 1);
  data::Batch batch = batch_of({3, 4}, {-1, -1});
  batch.targets = torch::tensor({{1.0f}, {1.0f}});
  worst.add(batch, torch::tensor({{1.5f}, {-2.0f}}));
  const std::vector<ShownSample> list = worst.read();
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].sample, 4);
  EXPECT_NEAR(list[0].error, 3, 1e-5);
}

TEST(WorstSamplesTest, OrdinaryOnesAreEvenlySpacedHoweverBatchesAreCut) {
  const auto task = task_of(config::TaskKind::multiclass, 2);
  for (const int64_t size : {7, 30}) {
    WorstSamples samples(*task, 1, /*images=*/120);
    for (int64_t begin = 0; begin < 120; begin += size) {
      std::vector<int64_t> numbers, labels;
      std::vector<double> probabilities;
      for (int64_t i = begin; i < std::min<int64_t>(120, begin + size); ++i) {
        numbers.push_back(1000 + i);
        labels.push_back(0);
        probabilities.push_back(0.2 + static_cast<double>(i) / 200);
      }
      samples.add(batch_of(numbers, labels), logits(probabilities));
    }
    const std::vector<ShownSample> list = samples.read_ordinary();
    ASSERT_EQ(list.size(), 12u);
    for (size_t i = 0; i < list.size(); ++i) {
      EXPECT_EQ(list[i].sample, 1005 + 10 * static_cast<int64_t>(i)) << size;
      EXPECT_NEAR(list[i].predicted[0], 0.2 + (5 + 10.0 * static_cast<double>(i)) / 200, 1e-5) << size;
      EXPECT_NEAR(list[i].error, 1 - list[i].predicted[0], 1e-5);
    }
  }
}

TEST(WorstSamplesTest, FewerThanWantedAndNotANumberAreNoError) {
  const auto task = task_of(config::TaskKind::multiclass, 2);
  WorstSamples worst(*task, 16);
  EXPECT_TRUE(worst.read().empty());
  worst.add(batch_of({1, 2}, {0, 0}), torch::tensor({{NAN, 0.0f}, {0.0f, 0.0f}}));
  const std::vector<ShownSample> list = worst.read();
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].sample, 2);
}

}  // namespace
}  // namespace stoker::engine
