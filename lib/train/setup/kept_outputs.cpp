// SPDX-License-Identifier: Apache-2.0
// A teacher's outputs for images that never change: computed once, in the order of the data, and kept in the run
// directory. Which batches they are computed in depends on no epoch, so that a run that is stopped has the same bits.
#include <chrono>

#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/system/file.h"
#include "core/time/clock.h"
#include "data/transform/transform.h"
#include "engine/group/message.h"
#include "engine/loop/group_exchange.h"
#include "engine/saved/safetensors.h"
#include "train/setup/assemble.h"
#include "train/setup/teacher.h"

namespace stoker::train {
namespace {

constexpr char kOutputs[] = "outputs", kOf[] = "of";
constexpr int64_t kMostKeptBytes = int64_t{1} << 30;  // on the device

int64_t outputs_bytes(const config::ResolvedOptions& options, const data::Source& train) {
  return train.size() * options.data.num_classes * int64_t{sizeof(float)};
}

/// All that decides the outputs.
std::string digest_of_outputs(const config::ResolvedOptions& options, const data::Datasets& datasets) {
  engine::RunIdentity identity;
  identity.training_options = config::training_relevant_values(options);
  identify_teacher(options, identity);
  return core::hash_hex(core::json_line(engine::options_json(identity)) + datasets.train->fingerprint() +
                        std::to_string(options.device.threads));
}

/// Undefined where the file does not hold those of `digest`.
torch::Tensor outputs_in(const std::string& path, const std::string& digest, at::IntArrayRef sizes) {
  if (!core::file_exists(path)) return {};
  try {
    const engine::SafetensorsContent content = engine::read_safetensors(path);
    const auto of = content.metadata.find(kOf);
    if (of == content.metadata.end() || of->second != digest || content.tensors.size() != 1) return {};
    const torch::Tensor& found = content.tensors[0].tensor;
    return found.sizes() == sizes && found.scalar_type() == at::kFloat ? found : torch::Tensor();
  } catch (const core::Error& error) {
    core::log_warning("{}; it is written again", error.what());
    return {};
  }
}

}  // namespace

int64_t kept_output_bytes(const config::ResolvedOptions& options, const data::Source& train) {
  const config::ResolvedAugmentOptions& augment = options.augment;
  if (options.model.teacher.empty() || augment.mixup_alpha > 0 || augment.cutmix_alpha > 0) return 0;
  const std::string varied = data::transform_text(transform_plan(options, train, /*training=*/true));
  const bool is_same = varied == "none" || varied == "letterbox";
  if (!is_same || options.data.frame_sampling != config::FrameSampling::uniform) return 0;
  const int64_t bytes = outputs_bytes(options, train);
  return bytes <= kMostKeptBytes ? bytes : 0;
}

void keep_teacher_outputs(const config::ResolvedOptions& options, const data::Datasets& datasets,
                          const JoinedRanks& ranks, const std::string& run_directory, bool may_write,
                          engine::Learner& learner) {
  if (!learner.teacher || kept_output_bytes(options, *datasets.train) == 0) return;
  const auto begin = std::chrono::steady_clock::now();
  const std::string path = run_directory + "/teacher.safetensors", digest = digest_of_outputs(options, datasets);
  const std::vector<int64_t> sizes = {datasets.train->size(), options.data.num_classes};
  const std::string found = ranks.from_root([&] {
    engine::MessageWriter message;
    const torch::Tensor table = outputs_in(path, digest, sizes);
    if (table.defined()) message.add(table);
    return message.bytes();
  });
  if (!found.empty()) {
    learner.teacher->keep(engine::MessageReader(found).tensor());
    if (ranks.is_root()) core::log_info("teacher   outputs of {} images are in {}", sizes[0], path);
    return;
  }
  const torch::Tensor table = torch::zeros(sizes, at::kFloat);
  const auto feed = ordered_feed(options, datasets.train, learner.device, ranks.share());
  engine::predict_sharded(ranks.group(), learner.teacher->network(), *feed, precision_of(options, learner.device),
                          config::TestTimeAugmentation::none,
                          [&](const data::Batch& batch, const torch::Tensor& outputs) {
                            const torch::Tensor places = torch::tensor(batch.samples, at::kLong);
                            torch::Tensor(table).index_copy_(0, places, outputs.to(at::kCPU).to(at::kFloat));
                          });
  learner.teacher->keep(table);
  if (!ranks.is_root() || !may_write) return;
  engine::replace_safetensors(path, {{kOutputs, table}}, {{kOf, digest}});
  core::log_info("teacher   outputs of {} images, which never change, in {:.1f} s: kept in {}", sizes[0],
                 core::seconds_since(begin), path);
}

}  // namespace stoker::train
