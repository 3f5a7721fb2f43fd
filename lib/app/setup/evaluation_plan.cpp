// SPDX-License-Identifier: Apache-2.0
#include "app/setup/evaluation_plan.h"

#include <algorithm>

#include "app/setup/assemble.h"
#include "app/setup/loader_tuning.h"
#include "app/setup/plan_run.h"
#include "engine/probe/memory_probe.h"

namespace stoker::app {

plan::PlanInputs evaluation_sizes(const config::ResolvedOptions& options, const data::Source& source,
                                  const model::ImageModel& model, int64_t data_bytes) {
  const data::SampleShape shape = transform_plan(options, source, /*training=*/false).shape;
  plan::PlanInputs inputs;
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

}  // namespace stoker::app
