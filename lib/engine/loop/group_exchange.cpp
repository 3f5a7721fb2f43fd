// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/group_exchange.h"

#include <algorithm>
#include <map>
#include <string>

#include "core/system/stop_signal.h"
#include "engine/group/message.h"

namespace stoker::engine {
std::vector<data::BadSample> bad_samples_of_all(const std::vector<data::BadSample>& own, Group& group) {
  MessageWriter message;
  for (const data::BadSample& sample : own) {
    message.add(sample.sample);
    message.add(sample.name);
    message.add(sample.reason);
  }
  std::map<int64_t, data::BadSample> all;
  for (const std::string& of_rank : group.gather(message.bytes())) {
    for (MessageReader reader(of_rank); !reader.at_end();) {
      data::BadSample sample;
      sample.sample = reader.i64();
      sample.name = reader.string();
      sample.reason = reader.string();
      all.emplace(sample.sample, sample);
    }
  }
  std::vector<data::BadSample> list;
  for (auto& [index, sample] : all) list.push_back(std::move(sample));
  return list;
}

int64_t share_bad_samples(data::Loader& loader, Group& group) {
  const std::vector<data::BadSample> all = bad_samples_of_all(loader.bad_samples(), group);
  loader.add_bad_samples(all);
  return static_cast<int64_t>(all.size());
}

void predict_sharded(Group& group, model::ImageModel& model, data::DeviceFeed& feed, const Precision& precision,
                     config::TestTimeAugmentation tta, const BatchVisitor& visit) {
  if (group.is_alone()) return predict(model, feed, precision, tta, visit);
  model.eval();
  feed.begin_epoch(0);
  const int64_t batches = feed.loader().batches_per_epoch();
  const WorkInStep in_step(group);
  int64_t bad_samples = feed.loader().bad_count();  // the same on all ranks
  for (int64_t first = 0; first < batches; first += group.size()) {
    data::Batch batch;
    const bool has_batch =
        first + group.rank() < batches && feed.next(batch, /*may_stop=*/false) && batch.image_count() > 0;
    MessageWriter message;
    message.add(core::stop_requested());
    message.add(feed.loader().bad_count());
    if (has_batch) {
      message.add(batch.planned_images);
      for (const torch::Tensor& tensor : {infer(model, batch.images, precision, tta), batch.labels, batch.targets}) {
        message.add(tensor);
      }
      for (const int64_t sample : batch.samples) message.add(sample);
    }
    const std::vector<std::string> ranks = group.gather(message.bytes());
    int64_t most_bad = 0;
    for (const std::string& of_rank : ranks) {
      MessageReader reader(of_rank);
      if (reader.flag()) throw core::StopRequested{};
      most_bad = std::max(most_bad, reader.i64());
    }
    if (most_bad > bad_samples) bad_samples = share_bad_samples(feed.loader(), group);
    for (const std::string& of_rank : ranks) {
      MessageReader reader(of_rank);
      reader.flag();
      reader.i64();
      if (reader.at_end()) continue;  // without a batch, or without an image
      data::Batch merged;
      merged.planned_images = reader.i64();
      const torch::Tensor outputs = reader.tensor().to(precision.device);
      merged.labels = reader.tensor().to(precision.device);
      merged.targets = reader.tensor().to(precision.device);
      while (!reader.at_end()) merged.samples.push_back(reader.i64());
      visit(merged, outputs);
    }
  }
}

EvalReport evaluate_sharded(Group& group, model::ImageModel& model, const Task& task, data::DeviceFeed& feed,
                            const Precision& precision, config::TestTimeAugmentation tta, const BatchVisitor& visit) {
  const auto predict_all = [&](const BatchVisitor& add) { predict_sharded(group, model, feed, precision, tta, add); };
  return evaluate_outputs(task, precision.device, predict_all, visit);
}

}  // namespace stoker::engine
