// SPDX-License-Identifier: Apache-2.0
// The metrics of evaluation. Golden numbers are scikit-learn's; scripts/parity/metrics_parity.py compares many
// more.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/task/metrics.h"
#include "engine/task/task.h"

namespace stoker::engine {
namespace {

std::pair<double, double> areas(std::vector<float> scores, std::vector<int64_t> positive) {
  const RankingAreas areas = ranking_areas(torch::tensor(scores), torch::tensor(positive, at::kLong));
  return {areas.roc_auc.item<double>(), areas.pr_auc.item<double>()};
}

TEST(RankingTest, EqualScoresStandTogether) {
  // roc_auc_score and average_precision_score of these
  const auto [roc, pr] = areas({0.9f, 0.8f, 0.8f, 0.8f, 0.5f, 0.5f, 0.25f, 0.1f}, {1, 0, 1, 1, 0, 1, 0, 0});
  EXPECT_DOUBLE_EQ(roc, 0.84375);
  EXPECT_DOUBLE_EQ(pr, 0.7916666666666666);
  // In another order of the same samples.
  const auto [roc_again, pr_again] = areas({0.8f, 0.1f, 0.5f, 0.8f, 0.9f, 0.8f, 0.25f, 0.5f}, {1, 0, 1, 1, 1, 0, 0, 0});
  EXPECT_DOUBLE_EQ(roc_again, roc);
  EXPECT_DOUBLE_EQ(pr_again, pr);
}

TEST(RankingTest, OneScoreForAllIsAsGoodAsChance) {
  const auto [roc, pr] = areas({1, 1, 1, 1}, {1, 0, 0, 0});
  EXPECT_EQ(roc, 0.5);
  EXPECT_EQ(pr, 0.25);
}

TEST(RankingTest, WithoutPositivesThereIsNoAreaAndWithoutNegativesNoRocArea) {
  EXPECT_TRUE(std::isnan(areas({1, 2}, {1, 1}).first));
  EXPECT_EQ(areas({1, 2}, {1, 1}).second, 1);
  EXPECT_TRUE(std::isnan(areas({1, 2}, {0, 0}).first));
  EXPECT_TRUE(std::isnan(areas({1, 2}, {0, 0}).second));
}

TEST(TargetErrorsTest, EqualScikitLearnWithAConstantTargetAsWell) {
  const torch::Tensor truth = torch::tensor({1.0f, 10.0f, 2.0f, 10.0f, 4.0f, 10.0f, 8.0f, 10.0f}).view({4, 2});
  torch::Tensor predicted = torch::tensor({1.5f, 10.0f, 2.0f, 10.0f, 3.0f, 10.0f, 10.0f, 10.0f}).view({4, 2});
  const TargetErrors errors = target_errors(predicted, truth);
  EXPECT_DOUBLE_EQ(errors.mae[0].item<double>(), 0.875);
  EXPECT_NEAR(errors.rmse[0].item<double>(), 1.14564392, 1e-8);
  EXPECT_NEAR(errors.r2[0].item<double>(), 0.8173913, 1e-7);
  EXPECT_EQ(errors.r2[1].item<double>(), 1);
  predicted[0][1] = 11;
  EXPECT_EQ(target_errors(predicted, truth).r2[1].item<double>(), 0);
}

TEST(AngleErrorsTest, GoTheShorterWayRound) {
  const torch::Tensor predicted = torch::tensor({359.0f, -170.0f, 30.0f, 540.0f}).view({4, 1});
  const torch::Tensor truth = torch::tensor({1.0f, 175.0f, -30.0f, 180.0f}).view({4, 1});
  const torch::Tensor apart = angle_difference(predicted, truth).abs();
  EXPECT_TRUE(torch::equal(apart, torch::tensor({2.0f, 15.0f, 60.0f, 0.0f}).view({4, 1}))) << apart;
  EXPECT_DOUBLE_EQ(angle_errors(predicted, truth).mae.item<double>(), 77.0 / 4);
}

data::Batch labelled(std::vector<int64_t> labels) {
  data::Batch batch;
  batch.labels = torch::tensor(labels, at::kLong);
  batch.targets = torch::empty({batch.labels.size(0), 0});
  return batch;
}

double value_of(const std::vector<Metric>& metrics, const std::string& name) {
  for (const Metric& metric : metrics) {
    if (metric.name == name) return metric.value;
  }
  ADD_FAILURE() << "no metric " << name;
  return 0;
}

TEST(MultilabelMetricsTest, ALabelWithoutSamplesIsLeftOutOfTheMeanArea) {
  TaskSpec spec;
  spec.kind = config::TaskKind::multilabel;
  spec.num_classes = 2;
  const auto metrics = make_task(spec, torch::kCPU)->make_metrics(/*with_tables=*/true);
  EXPECT_TRUE(std::isnan(value_of(metrics->read(), "pr_auc"))) << "no sample";
  data::Batch batch;
  batch.labels = torch::zeros({3}, at::kLong);
  batch.targets = torch::tensor({1.f, 0.f, 0.f, 0.f, 1.f, 0.f}).view({3, 2});
  metrics->add(torch::tensor({3.f, 1.f, 2.f, 1.f, 1.f, 1.f}).view({3, 2}), batch);
  EXPECT_DOUBLE_EQ(value_of(metrics->read(), "pr_auc"), (1.0 + 2.0 / 3) / 2) << "of the first label alone";
  EXPECT_DOUBLE_EQ(value_of(metrics->read(), "roc_auc"), 0.5);
  const std::vector<ResultTable> tables = metrics->tables({"a", "b"});
  EXPECT_TRUE(std::isnan(tables.at(0).rows.at(1).values.back())) << "pr_auc of the label without samples";
}

TEST(MulticlassMetricsTest, CountsTop1AndTop5) {
  TaskSpec spec;
  spec.num_classes = 7;
  const auto metrics = make_task(spec, torch::kCPU)->make_metrics(false);
  // Scores fall from class 0 to 6: class 0 is a top-1 hit, 4 a top-5 hit, 6 neither.
  const torch::Tensor row = torch::arange(7, 0, -1).to(at::kFloat);
  const torch::Tensor logits = torch::stack({row, row, row});
  metrics->add(logits, labelled({0, 4, 6}));
  metrics->add(logits, labelled({0, 0, 5}));
  EXPECT_DOUBLE_EQ(value_of(metrics->read(), "top1"), 50);
  EXPECT_DOUBLE_EQ(value_of(metrics->read(), "top5"), 400.0 / 6);
}

TEST(MulticlassMetricsTest, OfEqualScoresTheFirstCountsAsArgmaxSays) {
  TaskSpec spec;
  spec.num_classes = 4;
  const std::unique_ptr<Task> task = make_task(spec, torch::kCPU);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const torch::Tensor rows = torch::tensor({1.f, 3.f, 3.f, 2.f, 1.f, nan, 3.f, nan, 2.f, 2.f, 2.f, 2.f}).view({3, 4});
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const torch::Tensor logits = rows.to(type);
    EXPECT_TRUE(torch::equal(logits.argmax(1), torch::tensor({1, 1, 0})));
    EXPECT_EQ(task->score_sum(logits, labelled({1, 1, 0})).item<int64_t>(), 3);
    EXPECT_EQ(task->score_sum(logits, labelled({2, 3, 1})).item<int64_t>(), 0);
  }
}

TEST(MulticlassMetricsTest, FewerThanFiveClassesMakeEveryImageATop5Hit) {
  TaskSpec spec;
  spec.num_classes = 3;
  const auto metrics = make_task(spec, torch::kCPU)->make_metrics(false);
  metrics->add(torch::rand({4, 3}), labelled({0, 1, 2, 0}));
  EXPECT_EQ(value_of(metrics->read(), "top5"), 100);
}

TEST(MulticlassMetricsTest, TablesEqualScikitLearn) {
  // precision_recall_fscore_support([0]*5 + [1]*3 + [2]*2, [0,0,0,1,1, 1,1,0, 0,1], zero_division=0)
  TaskSpec spec;
  spec.num_classes = 3;
  const auto metrics = make_task(spec, torch::kCPU)->make_metrics(/*with_tables=*/true);
  const torch::Tensor predicted = torch::tensor({0, 0, 0, 1, 1, 1, 1, 0, 0, 1}, at::kLong);
  metrics->add(torch::one_hot(predicted, 3).to(at::kFloat), labelled({0, 0, 0, 0, 0, 1, 1, 1, 2, 2}));
  const std::vector<ResultTable> tables = metrics->tables({"a", "b", "c"});
  ASSERT_EQ(tables.size(), 2u);
  const auto near = [](const std::vector<double>& a, const std::vector<double>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-12) << i;
  };
  near(tables[0].rows[0].values, {5, 5, 0.6, 0.6, 0.6});
  near(tables[0].rows[1].values, {3, 5, 0.4, 2.0 / 3, 0.5});
  near(tables[0].rows[2].values, {2, 0, 0, 0, 0});
  near(tables[0].rows[3].values, {10, 10, 1.0 / 3, (0.6 + 2.0 / 3) / 3, 1.1 / 3});
  EXPECT_EQ(tables[0].rows[3].name, "macro average");
  near(tables[1].rows[0].values, {3, 2, 0});
  near(tables[1].rows[2].values, {1, 1, 0});
  EXPECT_DOUBLE_EQ(value_of(metrics->read(), "f1"), 1.1 / 3);
}

TEST(MulticlassMetricsTest, OfManyClassesOnlyThePairsThatOccurAreKept) {
  TaskSpec spec;
  spec.num_classes = 100'000;  // a matrix would take 80 GB
  const auto metrics = make_task(spec, torch::kCPU)->make_metrics(/*with_tables=*/true);
  std::vector<std::string> names;
  for (int64_t k = 0; k < spec.num_classes; ++k) names.push_back("c" + std::to_string(k));
  for (const int64_t predicted : {99'999, 5}) {
    metrics->add(torch::one_hot(torch::tensor({predicted, predicted}), spec.num_classes).to(at::kFloat),
                 labelled({99'999, 7}));
  }
  const std::vector<ResultTable> tables = metrics->tables(names);
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_EQ(tables[1].name, "confusion_pairs");
  ASSERT_EQ(tables[1].rows.size(), 4u);
  EXPECT_EQ(tables[1].rows[0].name, "c7");
  EXPECT_EQ(tables[1].rows[3].name, "c99999");
  for (const auto& row : tables[1].rows) EXPECT_EQ(row.values, std::vector<double>{1});
}

struct ByDefinition {
  double f1_weighted = 0, balanced_accuracy = 0, mcc = 0, kappa = 0;
};

/// From the whole confusion matrix, as scikit-learn computes them.
ByDefinition by_definition(const std::vector<int64_t>& truth, const std::vector<int64_t>& predicted, int64_t classes) {
  const auto n = static_cast<double>(truth.size());
  std::vector<std::vector<double>> matrix(static_cast<size_t>(classes),
                                          std::vector<double>(static_cast<size_t>(classes)));
  for (size_t i = 0; i < truth.size(); ++i) {
    ++matrix[static_cast<size_t>(truth[i])][static_cast<size_t>(predicted[i])];
  }
  ByDefinition of;
  double agreed = 0, expected = 0, with_truth = 0, of_truth = 0, of_predicted = 0, present = 0;
  for (size_t k = 0; k < matrix.size(); ++k) {
    double row = 0, column = 0;
    for (size_t j = 0; j < matrix.size(); ++j) {
      row += matrix[k][j];
      column += matrix[j][k];
    }
    const double precision = column > 0 ? matrix[k][k] / column : 0, recall = row > 0 ? matrix[k][k] / row : 0;
    of.f1_weighted += precision + recall > 0 ? row / n * 2 * precision * recall / (precision + recall) : 0;
    of.balanced_accuracy += recall;
    present += row > 0 ? 1 : 0;
    agreed += matrix[k][k] / n;
    expected += row / n * column / n;
    // Covariances of the indicators of the class.
    with_truth += matrix[k][k] / n - row / n * column / n;
    of_truth += row / n * (1 - row / n);
    of_predicted += column / n * (1 - column / n);
  }
  of.balanced_accuracy /= present;
  of.kappa = (agreed - expected) / (1 - expected);
  of.mcc = of_truth * of_predicted > 0 ? with_truth / std::sqrt(of_truth * of_predicted) : 0;
  return of;
}

TEST(AgreementTest, EqualsScikitLearnWithAMatrixAndWithout) {
  torch::manual_seed(7);
  for (const int64_t classes : {2, 3, 40, 1200}) {  // 1200: no matrix is kept
    for (const bool with_tables : {false, true}) {
      TaskSpec spec;
      spec.num_classes = classes;
      const auto metrics = make_task(spec, torch::kCPU)->make_metrics(with_tables);
      std::vector<int64_t> truth, predicted;
      for (const int64_t rows : {50, 1, 30}) {
        const torch::Tensor labels = torch::randint(0, std::max<int64_t>(2, classes / 2), {rows}, at::kLong);
        const torch::Tensor answers =
            torch::where(torch::rand({rows}) < 0.6, labels, torch::randint(0, classes, {rows}, at::kLong));
        data::Batch batch =
            labelled(std::vector<int64_t>(labels.data_ptr<int64_t>(), labels.data_ptr<int64_t>() + rows));
        metrics->add(torch::one_hot(answers, classes).to(at::kFloat), batch);
        truth.insert(truth.end(), labels.data_ptr<int64_t>(), labels.data_ptr<int64_t>() + rows);
        predicted.insert(predicted.end(), answers.data_ptr<int64_t>(), answers.data_ptr<int64_t>() + rows);
      }
      const ByDefinition wanted = by_definition(truth, predicted, classes);
      const std::vector<Metric> values = metrics->read();
      EXPECT_NEAR(value_of(values, "f1_weighted"), wanted.f1_weighted, 1e-12) << classes;
      EXPECT_NEAR(value_of(values, "balanced_accuracy"), wanted.balanced_accuracy, 1e-12) << classes;
      EXPECT_NEAR(value_of(values, "mcc"), wanted.mcc, 1e-12) << classes;
      EXPECT_NEAR(value_of(values, "kappa"), wanted.kappa, 1e-12) << classes;
    }
  }
}

TEST(AgreementTest, EqualsTheExamplesOfScikitLearn) {
  const auto values_of = [](int64_t classes, const std::vector<int64_t>& truth, const std::vector<int64_t>& predicted) {
    TaskSpec spec;
    spec.kind = classes == 2 ? config::TaskKind::binary : config::TaskKind::multiclass;
    spec.num_classes = classes;
    const auto metrics = make_task(spec, torch::kCPU)->make_metrics(false);
    const torch::Tensor answers = torch::tensor(predicted, at::kLong);
    metrics->add(
        classes == 2 ? answers.to(at::kFloat).unsqueeze(1) * 2 - 1 : torch::one_hot(answers, classes).to(at::kFloat),
        labelled(truth));
    return metrics->read();
  };
  EXPECT_NEAR(value_of(values_of(3, {0, 1, 2, 0, 1, 2}, {0, 2, 1, 0, 0, 1}), "f1_weighted"), 4.0 / 15, 1e-12);
  EXPECT_NEAR(value_of(values_of(2, {0, 1, 0, 0, 1, 0}, {0, 1, 0, 0, 0, 1}), "balanced_accuracy"), 0.625, 1e-12);
  EXPECT_NEAR(value_of(values_of(2, {1, 1, 1, 0}, {1, 0, 1, 1}), "mcc"), -1.0 / 3, 1e-12);
  EXPECT_NEAR(value_of(values_of(3, {0, 1, 0, 2, 1}, {0, 1, 0, 2, 0}), "kappa"), 0.6875, 1e-12);
  const std::vector<Metric> one_class = values_of(3, {1, 1}, {1, 1});
  EXPECT_EQ(value_of(one_class, "mcc"), 0);
  EXPECT_TRUE(std::isnan(value_of(one_class, "kappa")));
  EXPECT_EQ(value_of(one_class, "balanced_accuracy"), 1);
  EXPECT_EQ(value_of(one_class, "f1_weighted"), 1);
}

TEST(BinaryMetricsTest, TheThresholdDecidesWhatIsPositiveButNotTheAreas) {
  const torch::Tensor outputs = torch::tensor({2.0f, 0.5f, -0.5f, -2.0f}).unsqueeze(1);
  TaskSpec spec;
  spec.kind = config::TaskKind::binary;
  spec.num_classes = 2;
  for (const auto& [threshold, recall, precision] :
       {std::tuple{0.5, 0.5, 0.5}, std::tuple{0.8, 0.5, 1.0}, std::tuple{0.3, 1.0, 2.0 / 3}}) {
    spec.options.threshold = {threshold};
    const auto metrics = make_task(spec, torch::kCPU)->make_metrics(true);
    metrics->add(outputs, labelled({1, 0, 1, 0}));
    EXPECT_DOUBLE_EQ(value_of(metrics->read(), "recall"), recall) << threshold;
    EXPECT_DOUBLE_EQ(value_of(metrics->read(), "precision"), precision) << threshold;
    EXPECT_DOUBLE_EQ(value_of(metrics->read(), "roc_auc"), 0.75) << threshold;
  }
}

TEST(BinaryMetricsTest, TheConfusionTableHasTruthInRows) {
  TaskSpec spec;
  spec.kind = config::TaskKind::binary;
  spec.num_classes = 2;
  const auto metrics = make_task(spec, torch::kCPU)->make_metrics(true);
  metrics->add(torch::tensor({1.0f, 1.0f, 1.0f, -1.0f, -1.0f}).unsqueeze(1), labelled({0, 0, 1, 1, 0}));
  const std::vector<ResultTable> tables = metrics->tables({"real", "fake"});
  EXPECT_EQ(tables[1].rows[0].values, (std::vector<double>{1, 2}));
  EXPECT_EQ(tables[1].rows[1].values, (std::vector<double>{1, 1}));
}

TEST(HeadPoseMetricsTest, NameEachAngle) {
  TaskSpec spec;
  spec.kind = config::TaskKind::head_pose;
  spec.num_classes = 3;
  const auto metrics = make_task(spec, torch::kCPU)->make_metrics(false);
  data::Batch batch = labelled({-1, -1});
  batch.targets = torch::tensor({1.0f, 2.0f, 3.0f, -179.0f, 0.0f, 0.0f}).view({2, 3});
  metrics->add(torch::tensor({2.0f, 2.0f, 0.0f, 179.0f, 4.0f, 0.0f}).view({2, 3}), batch);
  const std::vector<Metric> values = metrics->read();
  EXPECT_DOUBLE_EQ(value_of(values, "mae_yaw"), 1.5);
  EXPECT_DOUBLE_EQ(value_of(values, "mae_pitch"), 2);
  EXPECT_DOUBLE_EQ(value_of(values, "mae_roll"), 1.5);
  EXPECT_NEAR(value_of(values, "mae"), 5.0 / 3, 1e-12);
}

TEST(EvalMetricsTest, WithoutAnyImageFiguresAreUndefinedNotWrong) {
  for (const config::TaskKind kind : {config::TaskKind::binary, config::TaskKind::multilabel,
                                      config::TaskKind::regression, config::TaskKind::head_pose}) {
    TaskSpec spec;
    spec.kind = kind;
    spec.num_classes = kind == config::TaskKind::binary ? 2 : 3;
    const auto metrics = make_task(spec, torch::kCPU)->make_metrics(true);
    EXPECT_NO_THROW(metrics->read());
    EXPECT_NO_THROW(metrics->tables({"a", "b", "c"}));
  }
}

}  // namespace
}  // namespace stoker::engine
