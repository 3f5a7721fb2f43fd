// SPDX-License-Identifier: Apache-2.0
// That a probe leaves a learner and torch's random numbers as they were.
#pragma once

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "engine/step/state_snapshot.h"
#include "model/image_model.h"
#include "tests/engine/probed_run.h"

namespace stoker::fixtures {

/// Whatever `probe` tries, training continues as if nothing had been.
inline void expect_nothing_left_behind(const std::function<void(ProbedRun&)>& probe) {
  ProbedRun run("small_cnn", 32, /*width=*/8);
  const at::Tensor next = [&] {
    const engine::StateSnapshot kept(*run.learner.model, torch::kCPU);
    const at::Tensor drawn = at::rand({4});
    kept.restore();
    return drawn;
  }();
  std::vector<at::Tensor> before;
  for (const model::NamedTensor& entry : model::state_of(*run.learner.model)) before.push_back(entry.tensor.clone());
  probe(run);
  const auto after = model::state_of(*run.learner.model);
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(at::equal(before[i], after[i].tensor)) << after[i].name;
  EXPECT_TRUE(run.learner.optimizer->gradients().empty());
  EXPECT_TRUE(run.learner.model->is_training());
  EXPECT_TRUE(at::equal(at::rand({4}), next)) << "random numbers continue as if nothing had been";
}

}  // namespace stoker::fixtures
