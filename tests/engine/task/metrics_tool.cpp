// SPDX-License-Identifier: Apache-2.0
// Puts outputs and truths from standard input through a task's metrics and writes what they give, for
// scripts/parity/metrics_parity.py. A case is
//   TASK CLASSES THRESHOLD ROWS
// and ROWS lines with the outputs and the truth (a class, or a number per target), blank between them. Answers are
// lines `name value`, those of tables as `table/row/column value`, and a line `end` per case.
#include <cstdio>
#include <iostream>
#include <string>

#include "config/task_facts.h"
#include "engine/task/task.h"

namespace {

using stoker::config::TaskKind;

/// Uneven batches: what is gathered must not depend on them.
constexpr int64_t kBatches[] = {7, 1, 16};

torch::Tensor read_rows(int64_t rows, int64_t columns) {
  torch::Tensor values = torch::empty({rows, columns});
  for (float* value = values.data_ptr<float>(); value != values.data_ptr<float>() + values.numel(); ++value) {
    double number = 0;
    std::cin >> number;
    *value = static_cast<float>(number);
  }
  return values;
}

bool answer_case() {
  std::string name;
  int64_t classes = 0, rows = 0;
  stoker::engine::TaskSpec spec;
  if (!(std::cin >> name >> classes >> spec.options.threshold.front() >> rows)) return false;
  for (const auto& [known, kind] : stoker::config::task_choices()) {
    if (known == name) spec.kind = kind;
  }
  spec.num_classes = classes;
  const auto task = stoker::engine::make_task(spec, torch::kCPU);
  const bool numbers = stoker::config::is_numeric_task(spec.kind);
  const int64_t outputs = task->num_outputs(), truths = numbers ? classes : 1;
  const torch::Tensor all = read_rows(rows, outputs + truths);
  const auto metrics = task->make_metrics(/*with_tables=*/true);
  for (int64_t at = 0, turn = 0; at < rows; ++turn) {
    const int64_t size = std::min(kBatches[turn % 3], rows - at);
    const torch::Tensor part = all.narrow(0, at, size);
    stoker::data::Batch batch;
    batch.targets = part.narrow(1, outputs, numbers ? truths : 0).contiguous();
    batch.labels = numbers ? torch::full({size}, -1, at::kLong) : part.select(1, outputs).to(at::kLong);
    metrics->add(part.narrow(1, 0, outputs).contiguous(), batch);
    at += size;
  }
  for (const auto& metric : metrics->read()) std::printf("%s %.17g\n", metric.name.c_str(), metric.value);
  std::vector<std::string> names;
  for (int64_t i = 0; i < classes; ++i) names.push_back("c" + std::to_string(i));
  for (const auto& table : metrics->tables(names)) {
    for (const auto& row : table.rows) {
      for (size_t i = 0; i < row.values.size(); ++i) {
        std::printf("%s/%s/%s %.17g\n", table.name.c_str(), row.name.c_str(), table.columns[i].c_str(), row.values[i]);
      }
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
