// SPDX-License-Identifier: Apache-2.0
// activation_tool MODEL SIDE IMAGES: what a forward and backward pass takes, predicted from a few images, and measured.
// For scripts/bench/plan_vs_observed.py.
#include <cstdio>
#include <cstdlib>

#include "tests/engine/probed_run.h"

int main(int argc, char** argv) {
  if (argc != 4) return 64;
  const int64_t images = std::atoll(argv[3]);
  stoker::fixtures::ProbedRun run(argv[1], std::atoll(argv[2]), /*width=*/32);
  const stoker::engine::ActivationModel model = probe_memory(run.learner, *run.task, run.settings);
  std::printf("{\"predicted\": %lld, \"measured\": %lld, \"seconds\": %.3f}\n",
              static_cast<long long>(model.training_bytes(images)), static_cast<long long>(run.measured_bytes(images)),
              model.seconds);
}
