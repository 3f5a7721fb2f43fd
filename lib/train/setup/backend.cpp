// SPDX-License-Identifier: Apache-2.0
#include "train/setup/backend.h"

#include <algorithm>

#include "train/setup/assemble.h"
#include "train/setup/plan_run.h"
#include "train/setup/teacher.h"

namespace stoker::train {
namespace {

/// A batch and the short one at the end of an epoch of `images` images.
std::vector<int64_t> batches_of(int64_t images, int64_t batch, bool drops_last) {
  const int64_t whole = std::min(batch, images), last = images % batch;
  std::vector<int64_t> sizes = {std::max<int64_t>(1, whole)};
  if (last > 0 && !drops_last && last != whole) sizes.push_back(last);
  return sizes;
}

}  // namespace

NetworkUse training_use(const Settings& settings, const data::Datasets& datasets) {
  const config::ResolvedOptions& options = settings.options();
  NetworkUse use;
  use.input = network_input(transform_plan(options, *datasets.train, /*training=*/true).shape);
  use.training_batches = batches_of(datasets.train->size(), options.loader.batch_size, options.loader.drop_last);
  if (options.train.auto_micro_batch) {
    const std::vector<int64_t> batches = use.training_batches;  // UpdateStep divides each as evenly as it goes
    for (const int64_t batch : batches) {
      for (int64_t parts = 2; batch / parts > 1; parts *= 2) {
        for (const int64_t images : {batch / parts, (batch + parts - 1) / parts})
          use.training_batches.push_back(images);
      }
    }
  }
  use.evaluation_batches = batches_of(datasets.val->size(), options.loader.val_batch_size, /*drops_last=*/false);
  // Measurements before training: memory on few images, operations on one.
  constexpr int64_t kFewImages = 4;
  use.training_batches.push_back(kFewImages);
  use.evaluation_batches.push_back(1);
  add_teacher(options, use);
  return use;
}

bool tries_precisions(const Settings& settings) {
  return settings.resolution().waits_for_amp || settings.options().precision.amp;
}

NetworkUse evaluation_use(const config::ResolvedOptions& options, const data::Source& source) {
  NetworkUse use;
  use.input = network_input(transform_plan(options, source, /*training=*/false).shape);
  use.evaluation_batches = batches_of(source.size(), options.loader.val_batch_size, /*drops_last=*/false);
  return use;
}

NetworkUse benchmark_use(const config::ResolvedOptions& options, std::vector<int64_t> input) {
  NetworkUse use;
  use.input = std::move(input);
  use.training_batches = {options.loader.batch_size};
  add_teacher(options, use);
  return use;
}

NetworkUse benchmark_use(const config::ResolvedOptions& options, const data::Source& source) {
  return benchmark_use(options, network_input(transform_plan(options, source, /*training=*/true).shape));
}

}  // namespace stoker::train
