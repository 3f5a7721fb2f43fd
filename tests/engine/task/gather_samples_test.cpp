// SPDX-License-Identifier: Apache-2.0
// Statistics compute from gathered samples the same metrics as evaluation.
#include "engine/task/evaluate.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

#include "config/task_facts.h"

#include "statistics/weighted_metrics.h"

namespace stoker::engine {
namespace {

using config::TaskKind;

class GatherSamplesTest : public ::testing::TestWithParam<TaskKind> {
 protected:
  TaskSpec spec() const {
    TaskSpec spec;
    spec.kind = GetParam();
    spec.num_classes = GetParam() == TaskKind::multiclass ? 7 : GetParam() == TaskKind::binary ? 2 : 3;
    spec.options.threshold = {0.4};
    if (GetParam() == TaskKind::multilabel) spec.options.threshold = {0.4, 0.6, 0.2};
    spec.options.temperature = 1.5;
    spec.options.target_mean = {1, 2, 3};
    spec.options.target_scale = {2, 3, 4};
    return spec;
  }
  data::Batch batch(int64_t images, const Task& task) const {
    data::Batch batch;
    const bool numbers = config::is_numeric_task(GetParam());
    batch.labels = torch::randint(0, GetParam() == TaskKind::binary ? 2 : 7, {images}, at::kLong);
    batch.targets = torch::randn({images, numbers ? 3 : 0}) * 40;
    if (GetParam() == TaskKind::multilabel) batch.targets = (batch.targets > 10).to(at::kFloat);
    for (int64_t i = 0; i < images; ++i) batch.samples.push_back(i);
    (void)task;
    return batch;
  }
};

TEST_P(GatherSamplesTest, GivesTheFiguresOfTheEvaluation) {
  torch::manual_seed(1);
  const auto task = make_task(spec(), torch::kCPU);
  const auto metrics = task->make_metrics(/*with_tables=*/false);
  GatheredSamples gathered(spec(), *task);
  double loss = 0;
  int64_t images = 0;
  for (const int64_t size : {31, 1, 8}) {
    const data::Batch part = batch(size, *task);
    const torch::Tensor outputs = torch::randn({size, task->num_outputs()}) * 2;
    metrics->add(outputs, part);
    gathered.add(outputs, part);
    loss += task->eval_loss_sum(outputs, part).item<double>();
    images += size;
  }
  const auto weighted = statistics::make_weighted_metrics(gathered.samples());
  std::vector<double> values(weighted->names().size());
  weighted->values(std::vector<uint32_t>(static_cast<size_t>(images), 1), values.data());
  EXPECT_EQ(weighted->names()[0].name, "loss");
  EXPECT_NEAR(values[0], loss / static_cast<double>(images), 1e-5 * std::abs(values[0]));
  const std::vector<Metric> reported = metrics->read();
  ASSERT_EQ(values.size(), reported.size() + 1);
  for (size_t k = 0; k < reported.size(); ++k) {
    EXPECT_EQ(weighted->names()[k + 1].name, reported[k].name);
    EXPECT_NEAR(values[k + 1], reported[k].value, 1e-9 * std::max(1.0, std::abs(reported[k].value)))
        << reported[k].name;
  }
}
INSTANTIATE_TEST_SUITE_P(Tasks, GatherSamplesTest,
                         ::testing::Values(TaskKind::multiclass, TaskKind::binary, TaskKind::multilabel,
                                           TaskKind::regression, TaskKind::head_pose));

}  // namespace
}  // namespace stoker::engine
