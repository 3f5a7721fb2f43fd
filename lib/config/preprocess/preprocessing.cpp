// SPDX-License-Identifier: Apache-2.0
// Between options and the record.
#include "config/preprocess/preprocessing.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "config/table/parse_value.h"
#include "config/task_facts.h"
#include "core/error.h"
#include "core/format.h"

namespace stoker::config {

int64_t Preprocessing::resized_short_side() const {
  // The nudge keeps exact quotients, such as 224 / 0.875 = 256, from falling short by one rounding.
  return static_cast<int64_t>(std::floor(static_cast<double>(std::min(height, width)) / crop_pct + 1e-9));
}

Preprocessing preprocessing_of(const ResolvedOptions& options, std::vector<std::string> names,
                               const FixedSamples& fixed) {
  const ResolvedDataOptions& data = options.data;
  Preprocessing record;
  record.task = data.task;
  record.names = std::move(names);
  record.num_classes = data.num_classes;
  record.frames = fixed.frames;
  record.views = fixed.views;
  record.taken_as_is = fixed.height > 0;
  record.height = record.taken_as_is ? fixed.height : data.img_size;
  record.width = record.taken_as_is ? fixed.width : data.img_size;
  record.channels = record.taken_as_is ? fixed.channels : data.in_chans;
  record.element = record.taken_as_is ? fixed.element : "uint8";
  record.frame_sampling = data.frame_sampling;
  record.frame_stride = data.frame_stride;
  record.crop = options.augment.eval_crop;
  record.crop_pct = options.augment.crop_pct;
  if (!record.taken_as_is) record.input_range = data.input_range;
  record.mean = data.mean;
  record.std = data.std;
  record.threshold = options.task.threshold;
  if (has_scaled_targets(data.task)) {
    record.target_mean = options.task.target_mean;
    record.target_scale = options.task.target_scale;
  }
  record.pose_head = options.task.pose_head;
  record.pose_bins = options.task.pose_bins;
  record.pose_range = options.task.pose_range;
  return record;
}

DataFacts facts_of(const Preprocessing& record) {
  DataFacts facts;
  facts.of_training = false;
  facts.num_classes = record.num_classes;
  facts.channels = record.channels;
  facts.median_height = record.height;
  facts.median_width = record.width;
  facts.has_fixed_size = record.taken_as_is;
  facts.has_videos = record.frames > 0 || record.views > 1;
  facts.has_float_samples = record.element != "uint8";
  return facts;
}

namespace {

/// Sets options through their rows, which check the ranges.
class Setter {
 public:
  Setter(const std::string& path, Table& table) : path_(path), table_(table) {}

  template <typename Field>
  void set(const Field& field, const std::string& text) {
    Row& row = table_.row_of(field);
    const std::string problem = table_.set(row, text, {Origin::Kind::run, path_});
    if (problem.empty()) return;
    throw core::Error(core::ErrorKind::data, core::format("{}: {}: {}", core::printable(path_), row.name, problem),
                      "preprocess.json was written by this program; restore it");
  }
  template <typename Field, typename Value>
  void set_choice(const Field& field, const std::vector<std::pair<std::string, Value>>& choices, Value value) {
    for (const auto& [name, meaning] : choices) {
      if (meaning == value) set(field, name);
    }
  }

 private:
  const std::string& path_;
  Table& table_;
};

/// Readers of outputs count names: each output has one. Classes may be fewer: --num-classes may reserve outputs.
void require_name_each(const Preprocessing& record, const std::string& path) {
  const auto names = static_cast<int64_t>(record.names.size()), outputs = record.num_classes;
  const bool fits = record.task == TaskKind::multiclass  ? names <= outputs
                    : record.task == TaskKind::binary    ? names == 2 && outputs == 2
                    : record.task == TaskKind::head_pose ? names == 3 && outputs == 3
                                                         : names == outputs;
  if (fits) return;
  throw core::Error(core::ErrorKind::data,
                    core::format("{}: {} for {} of task {}", core::printable(path), core::counted(names, "name"),
                                 core::counted(outputs, "output"), task_name(record.task)),
                    "preprocess.json was written by this program; restore it");
}

}  // namespace

void take_over(const Preprocessing& record, const std::string& path, Configuration& configuration) {
  require_name_each(record, path);
  Options& options = configuration.options;
  Setter setter(path, configuration.table);
  setter.set_choice(options.data.task, task_choices(), record.task);
  if (!record.taken_as_is) {
    setter.set(options.data.img_size, std::to_string(record.height));
    setter.set(options.data.in_chans, std::to_string(record.channels));
  }
  setter.set(options.data.num_classes, std::to_string(record.num_classes));
  setter.set(options.data.input_range, record.input_range.empty() ? "full" : list_value_text(record.input_range));
  setter.set(options.data.mean, list_value_text(record.mean));
  setter.set(options.data.std, list_value_text(record.std));
  if (record.frames > 0 || record.views > 1) {
    setter.set(options.data.clip_frames, std::to_string(std::max<int64_t>(1, record.frames)));
  }
  setter.set(options.data.frame_sampling, (record.frame_sampling == FrameSampling::uniform ? "uniform," : "stride,") +
                                              std::to_string(record.frame_stride));
  setter.set(options.augment.eval_crop, record.crop == EvalCrop::center ? "center" : "none");
  setter.set(options.augment.crop_pct, number_text(record.crop_pct));
  setter.set(options.task.threshold, number_text(record.threshold));
  if (!record.target_mean.empty()) setter.set(options.task.target_mean, list_value_text(record.target_mean));
  if (!record.target_scale.empty()) setter.set(options.task.target_scale, list_value_text(record.target_scale));
  setter.set(options.task.pose_head,
             core::format("{},{},{},{}", record.pose_head == PoseHead::direct ? "direct" : "binned", record.pose_bins,
                          record.pose_range, options.task.pose_loss_weight));
}

}  // namespace stoker::config
