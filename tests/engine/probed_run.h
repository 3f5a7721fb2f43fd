// SPDX-License-Identifier: Apache-2.0
// A network with everything that training keeps beside it, for tests and tools that measure its memory.
#pragma once

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <torch/utils.h>

#include <memory>
#include <string>

#include "engine/probe/memory_probe.h"
#include "model/buffers.h"
#include "model/model.h"

namespace stoker::fixtures {

struct ProbedRun {
  ProbedRun(const std::string& model, int64_t side, int64_t width) {
    at::set_num_threads(1);
    torch::manual_seed(3);
    model::ModelSpec spec;
    spec.name = model;
    spec.num_classes = 10;
    spec.img_size = {side, side};
    spec.width = width;
    spec.drop_rate = 0.2;
    learner.model = model::make_model(spec);
    model::join_buffers(*learner.model);
    std::vector<optim::NamedParameter> parameters;
    for (const auto& item : learner.model->named_parameters()) parameters.push_back({item.key(), item.value()});
    learner.optimizer = std::make_unique<optim::Optimizer>(parameters, config::ResolvedOptimOptions());
    learner.scaler = std::make_unique<optim::GradScaler>(optim::GradScalerSettings{}, torch::kCPU);
    engine::TaskSpec task_spec;
    task_spec.num_classes = 10;
    task = engine::make_task(task_spec, torch::kCPU);
    settings.input = {3, side, side};
    settings.num_classes = 10;
  }

  /// The measured peak memory of forward and backward on `images`.
  int64_t measured_bytes(int64_t images) {
    engine::UpdateStep step(settings.update, *task, learner);
    learner.model->train();
    return engine::peak_bytes(engine::trace_allocations([&] {
      data::Batch batch;
      batch.images = at::randn({images, 3, settings.input[1], settings.input[2]});
      batch.labels = at::zeros({images}, at::kLong);
      batch.targets = at::zeros({images, 10});
      step.accumulate(batch, images);
      learner.optimizer->zero_grad();
    }));
  }

  engine::Learner learner;
  std::unique_ptr<engine::Task> task;
  engine::ProbeSettings settings;
};

}  // namespace stoker::fixtures
