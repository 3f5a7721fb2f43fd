// SPDX-License-Identifier: Apache-2.0
// Reads predictions from standard input and writes what statistics/certainty.h computes of them, for
// scripts/parity/certainty_parity.py. A case is
//   TASK COLUMNS THRESHOLD ROWS RESAMPLES
// and ROWS lines: the loss, then of multiclass the class, the predicted one, whether it is among the first five,
// and the confidence; else predictions and targets, COLUMNS numbers each. Answers are lines `name values...`,
// and a line `end`. A case of task `wilson HITS SAMPLES` gives that interval.
#include <cstdio>
#include <iostream>
#include <string>

#include "config/task_facts.h"
#include "statistics/certainty.h"

namespace {

using stoker::statistics::EvaluatedSamples;

void read_row(EvaluatedSamples& samples) {
  float number = 0;
  int32_t truth = 0, predicted = 0, in_top5 = 0;
  samples.samples.push_back(samples.count());
  std::cin >> number;
  samples.loss.push_back(number);
  if (samples.task == stoker::config::TaskKind::multiclass) {
    std::cin >> truth >> predicted >> in_top5 >> number;
    samples.truth_class.push_back(truth);
    samples.predicted_class.push_back(predicted);
    samples.in_top5.push_back(static_cast<uint8_t>(in_top5));
    samples.confidence.push_back(number);
    return;
  }
  for (auto* const list : {&samples.outputs, &samples.truth}) {
    for (int64_t k = 0; k < samples.columns; ++k) {
      std::cin >> number;
      list->push_back(number);
    }
  }
}

bool answer_case() {
  std::string task;
  if (!(std::cin >> task)) return false;
  if (task == "wilson") {
    int64_t hits = 0, all = 0;
    std::cin >> hits >> all;
    const stoker::statistics::Interval interval = stoker::statistics::wilson_interval(hits, all, 0.95);
    std::printf("wilson %.17g %.17g\nend\n", interval.low, interval.high);
    return true;
  }
  EvaluatedSamples samples;
  stoker::statistics::BootstrapSettings settings;
  int64_t rows = 0;
  std::cin >> samples.columns >> samples.threshold.front() >> rows >> settings.resamples;
  for (const auto& [known, kind] : stoker::config::task_choices()) {
    if (known == task) samples.task = kind;
  }
  for (int64_t i = 0; i < rows; ++i) read_row(samples);
  const stoker::statistics::Certainty certainty = stoker::statistics::certainty_of(samples, settings);
  for (const auto& metric : certainty.metrics) {
    std::printf("%s %.17g %.17g %.17g\n", metric.name.c_str(), metric.value, metric.interval.low, metric.interval.high);
  }
  for (const auto& label : certainty.thresholds) {
    std::printf("threshold %.17g %.17g %.17g %.17g\n", label.f1.value, label.accuracy.value,
                label.balanced_accuracy.value, label.f1.threshold);
  }
  if (certainty.calibration) {
    std::printf("ece %.17g\n", certainty.calibration->ece);
    for (const auto& bin : certainty.calibration->bins) {
      std::printf("bin %lld %.17g %.17g\n", static_cast<long long>(bin.answers), bin.confidence, bin.right);
    }
  }
  std::printf("end\n");
  return true;
}

}  // namespace

int main() {
  while (answer_case()) {
  }
  return 0;
}
