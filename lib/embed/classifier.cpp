// SPDX-License-Identifier: Apache-2.0
#include "embed/classifier.h"

#include <dlfcn.h>

#include <filesystem>

#include "core/error.h"
#include "core/format.h"
#include "data/loader/sample_reader.h"
#include "data/source.h"
#include "embed/stoker.h"
#include "engine/task/evaluate.h"
#include "model/script/network_library.h"

namespace stoker::embed {
namespace {

using core::Error;
using core::ErrorKind;

/// The image at hand, for the reader of samples.
class OneImage : public data::LeafSource {
 public:
  explicit OneImage(const data::SampleContent& image) : image_(image) {}
  int64_t size() const override { return 1; }
  int64_t label(int64_t /*index*/) const override { return -1; }
  std::string name(int64_t /*index*/) const override { return "image"; }
  std::string relative_name(int64_t /*index*/) const override { return "image"; }
  std::string read(int64_t /*index*/, std::vector<uint8_t>& /*buffer*/, data::SampleContent& content) const override {
    content = image_;
    return "";
  }

 private:
  data::SampleContent image_;
};

void refuse_other_samples(const config::Preprocessing& record) {
  if (record.frames > 0 || record.views > 1)
    throw Error(ErrorKind::config, "this network takes clips, not single images");
  if (record.element == "uint8") return;
  throw Error(ErrorKind::config, core::format("this network takes samples of {}, not images", record.element));
}

/// The memory of an image is bounded, whatever size a checkpoint claims that its network was trained with.
void refuse_huge_images(const config::Preprocessing& record, const std::string& checkpoint) {
  if (record.height <= STOKER_MOST_PIXELS / record.width) return;
  throw Error(ErrorKind::config,
              core::format("{}/{}: height {} x width {} are more than the {} pixels that libstoker opens", checkpoint,
                           engine::kPreprocessFile, record.height, record.width, core::count_text(STOKER_MOST_PIXELS)),
              "train predict takes images of any size");
}

/// Where it is installed or built, seen from the file of this library; empty: at no place.
std::string prover_beside_library() {
  Dl_info info{};
  static const char here = 0;
  if (::dladdr(&here, &info) == 0 || info.dli_fname == nullptr) return "";
  std::error_code ignored;
  const auto folder = std::filesystem::canonical(info.dli_fname, ignored).parent_path();
  for (const char* const place : {"stoker", "../libexec/stoker", "../../libexec/stoker"}) {
    const auto program = folder / place / "stoker-prove";
    if (std::filesystem::exists(program, ignored)) return program.string();
  }
  return "";
}

}  // namespace

Classifier::Classifier(const std::string& run_or_checkpoint, const std::string& which) {
  config::Configuration given;
  const auto [saved, record] = deploy::read_checkpoint(engine::load_model_of(run_or_checkpoint, which), given);
  if (!record) {
    throw Error(ErrorKind::data, core::format("{} has no preprocess.json: an older program wrote it", saved.path));
  }
  refuse_other_samples(*record);
  refuse_huge_images(*record, saved.path);
  if (model::is_network_file(given.options.model.model)) {
    throw Error(
        ErrorKind::config, core::format("the network of {} comes from a TorchScript file", saved.path),
        "libstoker opens networks of Stoker's own; LibTorch opens what `train export --format torchscript` writes");
  }
  config::Facts facts = deploy::first_facts(given, core::read_machine_facts());  // no accelerators: it uses the CPU
  options_ = deploy::settle(given.options, facts, config::facts_of(*record)).options;

  preprocess_json_ = saved.preprocess.dump(1, ' ', false, core::Json::error_handler_t::replace);
  names_ = record->names;
  while (static_cast<int64_t>(names_.size()) < record->num_classes) {
    names_.push_back(core::format("output {}", names_.size()));
  }
  if (record->task == config::TaskKind::binary && names_.size() == 2) names_.erase(names_.begin());  // of "yes" alone
  engine::require_prediction_each(*deploy::build_task(options_, torch::kCPU), record->task, names_.size(), saved.path);
  plan_ = data::make_transform_plan(options_.data, options_.augment, /*training=*/false);
  data::add_views(options_.train.tta, plan_);
  deploy::NetworkUse use;
  use.input = {plan_.shape.channels, plan_.out_height(), plan_.shape.width};
  use.evaluation_batches = {1};
  network_ =
      deploy::open_network(options_, torch::kCPU, saved, use, {}, {prover_beside_library(), /*may_limit_isa=*/false});
  network_.model->eval();
  limits_ = deploy::decode_limits(options_.data);
  data::require_per_channel(options_.data.mean, options_.data.std, plan_.shape.channels);
  normal_ = data::make_normal_table(options_.data.mean, options_.data.std);
}

std::vector<float> Classifier::classify(const data::SampleContent& image) {
  const OneImage source(image);
  data::SampleReader reader(source, plan_, limits_, options_.train.seed);
  std::vector<uint8_t> row(static_cast<size_t>(plan_.shape.bytes()));
  data::StageTimes times;
  const std::string reason = reader.read_into(0, 0, 0, row.data(), nullptr, times);
  if (!reason.empty()) throw Error(ErrorKind::data, "the image cannot be read: " + reason);

  const int64_t area = plan_.shape.height * plan_.shape.width;
  torch::Tensor images = torch::empty({1, plan_.shape.channels, plan_.shape.height, plan_.shape.width}, at::kFloat);
  data::normalise(row.data(), 1, area, plan_.shape.channels, normal_, /*channels_last=*/false,
                  images.data_ptr<float>());
  if (options_.precision.channels_last) images = images.contiguous(torch::MemoryFormat::ChannelsLast);
  const torch::Tensor outputs = engine::infer(*network_.model, images, network_.precision, options_.train.tta);
  const torch::NoGradGuard no_gradients;
  const torch::Tensor predictions = network_.task->predictions(outputs).to(at::kFloat).contiguous().reshape({-1});
  if (predictions.numel() !=
      static_cast<int64_t>(names_.size())) {  // the caller's buffer holds one number for each name
    throw Error(ErrorKind::data, core::format("the network made {} predictions of one image instead of {}",
                                              predictions.numel(), names_.size()));
  }
  const float* const numbers = predictions.data_ptr<float>();
  return {numbers, numbers + predictions.numel()};
}

}  // namespace stoker::embed
