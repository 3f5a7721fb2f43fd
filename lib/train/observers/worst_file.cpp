// SPDX-License-Identifier: Apache-2.0
#include "train/observers/worst_file.h"

#include <algorithm>
#include <exception>

#include "config/task_facts.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/file.h"
#include "core/text/base64.h"
#include "core/text/json.h"
#include "data/image/jpeg/jpeg_encode.h"
#include "data/loader/sample_reader.h"
#include "train/setup/assemble.h"

namespace stoker::train {
namespace {

constexpr int64_t kThumbnailSide = 112;  // pixels
constexpr int kThumbnailQuality = 80;

std::string name_of(const std::vector<std::string>& names, int64_t index) {
  const bool named = index >= 0 && index < static_cast<int64_t>(names.size());
  return named ? names[static_cast<size_t>(index)] : core::format("{}", index);
}

std::string numbers_text(const float* numbers, size_t count) {
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(4, count); ++i)
    text += core::format("{}{:.4g}", i > 0 ? ", " : "", numbers[i]);
  return count > 4 ? text + ", ..." : text;
}

struct Captions {
  std::string truth, predicted;
};

Captions captions_of(const data::Source& source, const engine::WorstSample& worst, config::TaskKind task) {
  const std::vector<float>& said = worst.predicted;
  if (config::learns_numbers(task)) {
    std::vector<float> targets(static_cast<size_t>(source.num_targets()));
    source.targets(worst.sample, targets.data());
    return {numbers_text(targets.data(), targets.size()), numbers_text(said.data(), said.size())};
  }
  const std::vector<std::string>& names = source.class_names();
  const std::string truth = name_of(names, source.label(worst.sample));
  if (said.size() == 1) {
    const bool positive = said[0] >= 0.5f;
    return {truth,
            core::format("{} {:.0f}%", name_of(names, positive ? 1 : 0), 100 * (positive ? said[0] : 1 - said[0]))};
  }
  const auto best = std::max_element(said.begin(), said.end());
  return {truth, core::format("{} {:.0f}%", name_of(names, best - said.begin()), 100 * *best)};
}

std::string file_text(int64_t epoch, const core::Json& samples) {
  const core::Json file = {{"epoch", epoch + 1}, {"samples", samples}};
  return file.dump(1, ' ', false, core::Json::error_handler_t::replace) + "\n";
}

}  // namespace

WorstFile::WorstFile(std::string run_dir, const config::ResolvedOptions& options,
                     std::shared_ptr<const data::Source> validation)
    : path_(std::move(run_dir) + "/worst.json"), options_(options), validation_(std::move(validation)) {}

void WorstFile::on_epoch(const engine::EpochEvent& event) {
  if (!event.is_best) return;
  worst_ = event.worst;
  epoch_ = event.epoch;
}

void WorstFile::write() const {
  if (worst_.empty()) return;
  try {
    core::write_file_atomically(path_, json(), /*durable=*/false);
  } catch (const std::exception& error) {  // memory for the pictures may be short
    core::log_warning("no pictures of the worst predictions: {}", error.what());
  }
}

std::string WorstFile::json() const {
  data::TransformPlan plan = transform_plan(options_, *validation_, /*training=*/false);
  data::SampleShape& shape = plan.shape;
  if (shape.element != data::Element::uint8)
    return file_text(epoch_, core::Json::array());  // spectrograms are no pictures
  shape.height = std::min(shape.height, kThumbnailSide);
  shape.width = std::min(shape.width, kThumbnailSide);
  data::SampleReader reader(*validation_, plan, decode_limits(options_.data), options_.train.seed);
  data::StageTimes times;
  std::vector<float> targets(static_cast<size_t>(validation_->num_targets()));
  std::vector<uint8_t> row(static_cast<size_t>(shape.bytes())), jpeg;
  const uint8_t* const pixels =
      row.data() + shape.images() / shape.views / 2 * shape.image_bytes();  // of a clip its middle
  core::Json samples = core::Json::array();
  for (const engine::WorstSample& worst : worst_) {
    const std::string trouble = reader.read_into(worst.sample, 0, /*round=*/0, row.data(), targets.data(), times);
    if (!trouble.empty()) continue;
    data::encode_jpeg(pixels, plan.out_width(), plan.out_height(), plan.channels(), kThumbnailQuality, jpeg);
    const Captions captions = captions_of(*validation_, worst, options_.data.task);
    samples.push_back({{"name", validation_->name(worst.sample)},
                       {"truth", captions.truth},
                       {"predicted", captions.predicted},
                       {"error", worst.error},
                       {"jpeg", core::base64(jpeg)}});
  }
  return file_text(epoch_, samples);
}

}  // namespace stoker::train
