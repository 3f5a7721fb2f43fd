// SPDX-License-Identifier: Apache-2.0
#include "app/setup/evaluation_plan.h"

#include <algorithm>

#include "app/setup/assemble.h"
#include "app/setup/loader_tuning.h"
#include "app/setup/plan_run.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "engine/probe/memory_probe.h"

namespace stoker::app {

PlanInputs evaluation_sizes(const config::ResolvedOptions& options, const data::Source& source,
                            const model::ImageModel& model, int64_t data_bytes) {
  const data::SampleShape shape = transform_plan(options, source, /*training=*/false).shape;
  PlanInputs inputs;
  inputs.device = options.device.device;
  inputs.batch_size = inputs.val_batch_size = options.loader.val_batch_size;  // nothing is trained on
  inputs.num_workers = options.loader.num_workers;
  inputs.prefetch_factor = options.loader.prefetch_factor;
  inputs.val_images = source.size();
  inputs.pixel_bytes = shape.bytes() + int64_t{sizeof(int64_t)} + source.num_targets() * int64_t{sizeof(float)};
  inputs.input_bytes = shape.images() * shape.height * shape.width * shape.channels * int64_t{sizeof(float)};
  inputs.data_bytes = data_bytes;
  inputs.weight_bytes = engine::state_bytes(model);
  const int64_t on_host = inputs.on_cpu() ? inputs.weight_bytes : 0;
  inputs.program_bytes = std::max<int64_t>(0, settled_resident_bytes() - data_bytes - on_host);
  inputs.evaluation_bytes = [bytes = inputs.input_bytes](int64_t images) { return images * bytes; };
  return inputs;
}

void refuse_evaluation_that_does_not_fit(const config::ResolvedOptions& options, const PlanInputs& inputs,
                                         const MemoryBudget& room) {
  const std::string short_of = shortage(make_memory_plan(inputs), room);
  if (short_of.empty()) return;
  const int64_t batch = largest_batch(inputs, room, inputs.val_batch_size, /*margin=*/0);
  const std::string hint = batch > 0 ? core::format("this may fit: --val-batch-size {}", batch)
                                     : "not even one image fits: choose a smaller --img-size";
  if (!options.run.plan_check) {
    core::log_warning("--no-plan-check goes on although {}; {}", short_of, hint);
    return;
  }
  throw core::Error(core::ErrorKind::out_of_memory, short_of, hint + "; --no-plan-check tries it all the same");
}

}  // namespace stoker::app
