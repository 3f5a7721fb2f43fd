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

int64_t Preprocessing::enlarged(int64_t side) const {
  // The nudge keeps exact quotients, such as 224 / 0.875 = 256, from falling short by one rounding.
  return static_cast<int64_t>(std::floor(static_cast<double>(side) / crop_pct + 1e-9));
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
  record.height = record.taken_as_is ? fixed.height : data.img_size.height;
  record.width = record.taken_as_is ? fixed.width : data.img_size.width;
  record.channels = record.taken_as_is ? fixed.channels : data.in_chans;
  record.element = record.taken_as_is ? fixed.element : "uint8";
  record.frame_sampling = data.frame_sampling;
  record.frame_stride = data.frame_stride;
  record.crop = options.augment.eval_crop;
  record.crop_pct = options.augment.crop_pct;
  record.interpolation = options.augment.interpolation;
  if (!record.taken_as_is) record.input_range = data.input_range;
  if (fixed.are_sounds) record.sound = data.sound;
  record.mean = data.mean;
  record.std = data.std;
  record.temperature = options.task.temperature;
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

const std::vector<std::pair<std::string, Interpolation>>& filters() {
  static const std::vector<std::pair<std::string, Interpolation>> all = {
      {"bilinear", Interpolation::bilinear}, {"bicubic", Interpolation::bicubic}, {"lanczos", Interpolation::lanczos}};
  return all;
}

const std::vector<std::pair<std::string, EvalCrop>>& crops() {
  static const std::vector<std::pair<std::string, EvalCrop>> all = {
      {"center", EvalCrop::center}, {"none", EvalCrop::none}, {"letterbox", EvalCrop::letterbox}};
  return all;
}

template <typename Value>
std::string choice_name(const std::vector<std::pair<std::string, Value>>& names, Value value) {
  for (const auto& [name, named] : names) {
    if (named == value) return name;
  }
  return "";
}

/// The resize before the crop, without its filter.
core::Json resize_json(const Preprocessing& record) {
  switch (record.crop) {
    case EvalCrop::none: break;
    case EvalCrop::center:
      if (record.height == record.width) {
        return {{"rule", "short-side"}, {"short_side", record.enlarged(record.height)}};
      }
      return {{"rule", "cover"}, {"height", record.enlarged(record.height)}, {"width", record.enlarged(record.width)}};
    case EvalCrop::letterbox: return {{"rule", "fit"}};
  }
  return {{"rule", "squash"}};
}

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
  /// Decides how much memory a sample takes: where the run's options have it, the record has to agree.
  template <typename Field>
  void set_size(const Field& field, const std::string& text) {
    const Row& row = table_.row_of(field);
    const std::string of_run = row.origin.kind == Origin::Kind::run ? row.render() : "auto";
    if (of_run != "auto" && of_run != text) {
      throw core::Error(core::ErrorKind::data,
                        core::format("{}: {} is {} there, but {} in the config.yaml beside it", core::printable(path_),
                                     row.name, text, of_run),
                        "both were written by this program: restore the checkpoint");
    }
    set(field, text);
  }
  /// One value for several targets is what a run was given so; else each target has its own.
  template <typename Field>
  void set_per_target(const Field& field, const char* key, const std::vector<double>& values, int64_t targets) {
    if (values.empty()) return;
    const Row& row = table_.row_of(field);
    const bool is_of_run = row.origin.kind == Origin::Kind::run && row.render() == list_value_text(values);
    if (values.size() == 1 && targets > 1 && !is_of_run) {
      throw core::Error(
          core::ErrorKind::data,
          core::format("{}: {} has 1 value for {}", core::printable(path_), key, core::counted(targets, "target")),
          "preprocess.json was written by this program; restore it");
    }
    set(field, list_value_text(values));
  }
  template <typename Field, typename Value>
  void set_choice(const Field& field, const std::vector<std::pair<std::string, Value>>& choices, Value value) {
    set(field, choice_name(choices, value));
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
    setter.set_size(options.data.img_size, image_size_text({record.height, record.width}));
    setter.set_size(options.data.in_chans, std::to_string(record.channels));
  }
  setter.set_size(options.data.num_classes, std::to_string(record.num_classes));
  setter.set(options.data.input_range, record.input_range.empty() ? "full" : list_value_text(record.input_range));
  setter.set(options.data.mean, list_value_text(record.mean));
  setter.set(options.data.std, list_value_text(record.std));
  if (record.frames > 0 || record.views > 1) {
    setter.set_size(options.data.clip_frames, std::to_string(std::max<int64_t>(1, record.frames)));
  }
  setter.set(options.data.frame_sampling, (record.frame_sampling == FrameSampling::uniform ? "uniform," : "stride,") +
                                              std::to_string(record.frame_stride));
  if (record.sound) {
    const SoundOptions& sound = *record.sound;
    setter.set_size(options.data.sound.sample_rate, std::to_string(sound.sample_rate));
    setter.set_size(options.data.sound.n_fft, std::to_string(sound.n_fft));
    setter.set_size(options.data.sound.hop, std::to_string(sound.hop_length()));
    setter.set_size(options.data.sound.mels, std::to_string(sound.mels));
    setter.set(options.data.sound.mel_scale, std::string(sound.mel_scale == MelScale::htk ? "htk," : "slaney,") +
                                                 (sound.mel_norm == MelNorm::none ? "none" : "slaney"));
    setter.set_size(options.data.sound.seconds, number_text(sound.seconds));
  }
  setter.set_choice(options.augment.eval_crop, crops(), record.crop);
  setter.set(options.augment.crop_pct, number_text(record.crop_pct));
  setter.set_choice(options.augment.interpolation, filters(), record.interpolation);
  setter.set(options.task.threshold, list_value_text(record.threshold));
  setter.set(options.task.temperature, number_text(record.temperature));
  setter.set_per_target(options.task.target_mean, "mean", record.target_mean, record.num_classes);
  setter.set_per_target(options.task.target_scale, "scale", record.target_scale, record.num_classes);
  setter.set(options.task.pose_head,
             core::format("{},{},{},{}", record.pose_head == PoseHead::direct ? "direct" : "binned", record.pose_bins,
                          record.pose_range, options.task.pose_loss_weight));
}

// The record as preprocess.json and back. Trusts nothing that it reads.

namespace {

using core::Json;

constexpr int kVersion = 2;
const char* channel_order(int64_t channels) { return channels == 3 ? "RGB" : channels == 1 ? "gray" : "as stored"; }

const char* names_key(TaskKind task) { return is_numeric_task(task) ? "target_names" : "class_names"; }

Json probabilities_json(const Preprocessing& record) {
  Json json = {{"rule", record.task == TaskKind::multiclass ? "softmax" : "sigmoid"}};
  const std::vector<double>& thresholds = record.threshold;
  if (record.task != TaskKind::multiclass) {
    json["threshold"] = thresholds.size() == 1 ? Json(thresholds.front()) : Json(thresholds);
  }
  if (record.temperature != 1) json["temperature"] = record.temperature;
  return json;
}

/// Readers of version 1 support one threshold and no temperature.
int version_of(const Preprocessing& record) {
  return record.temperature != 1 || record.threshold.size() > 1 ? kVersion : 1;
}

Json predictions_json(const Preprocessing& record) {
  switch (record.task) {
    case TaskKind::multiclass:
    case TaskKind::binary:
    case TaskKind::multilabel: return probabilities_json(record);
    case TaskKind::regression:
    case TaskKind::head_pose: break;
  }
  Json json = {{"rule", "linear"}, {"scale", record.target_scale}, {"mean", record.target_mean}};
  if (record.task == TaskKind::head_pose && record.pose_head == PoseHead::binned) {
    json["rule"] = "expectation";
    json["bins"] = record.pose_bins;
    json["range"] = record.pose_range;
  }
  return json;
}

/// A problem of a record, with its path.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  [[noreturn]] void refuse(const std::string& what) const {
    throw core::Error(core::ErrorKind::data, core::format("{}: {}", core::printable(path_), what),
                      "preprocess.json was written by a train program, maybe a newer one; use that, or restore it");
  }
  /// Which of `choices` a text is.
  template <typename Value>
  Value choice(const Json& json, const char* key, const std::vector<std::pair<std::string, Value>>& choices) const {
    const std::string text = json.at(key).get<std::string>();
    for (const auto& [name, value] : choices) {
      if (name == text) return value;
    }
    refuse(core::format("{} is '{}', which this program does not support", key, core::printable(text)));
  }
  void expect(const Json& json, const char* key, const Json& expected) const {
    if (json.at(key) != expected) {
      refuse(core::format("{} is {}, but this program supports {} only", key,
                          core::printable(core::json_line(json.at(key))), core::json_line(expected)));
    }
  }
  int64_t positive(const Json& json, const char* key) const {
    if (!json.at(key).is_number_integer()) refuse(core::format("{} is not a whole number", key));
    const auto value = json.at(key).get<int64_t>();
    if (value < 1 || value > (1 << 24)) refuse(core::format("{} is {}", key, value));
    return value;
  }

 private:
  const std::string& path_;
};

/// By the names of torchaudio: MelSpectrogram(sample_rate, n_fft, hop_length=..., ...), AmplitudeToDB().
Json sound_json(const SoundOptions& sound) {
  return {{"sample_rate", sound.sample_rate},
          {"n_fft", sound.n_fft},
          {"hop_length", sound.hop_length()},
          {"n_mels", sound.mels},
          {"seconds", sound.seconds},
          {"mel_scale", sound.mel_scale == MelScale::htk ? "htk" : "slaney"},
          {"norm", sound.mel_norm == MelNorm::none ? Json() : Json("slaney")},
          {"amin", 1e-10}};
}

void read_sound_options(const Json& json, const Reader& reader, Preprocessing& record) {
  SoundOptions sound;
  sound.sample_rate = reader.positive(json, "sample_rate");
  sound.n_fft = reader.positive(json, "n_fft");
  sound.hop = reader.positive(json, "hop_length");
  sound.mels = reader.positive(json, "n_mels");
  json.at("seconds").get_to(sound.seconds);
  if (!(sound.seconds > 0 && sound.seconds <= 3600)) reader.refuse(core::format("seconds is {}", sound.seconds));
  sound.mel_scale = reader.choice<MelScale>(json, "mel_scale", {{"htk", MelScale::htk}, {"slaney", MelScale::slaney}});
  if (json.contains("norm") && !json.at("norm").is_null()) {
    sound.mel_norm = reader.choice<MelNorm>(json, "norm", {{"slaney", MelNorm::slaney}});
  }
  reader.expect(json, "amin", sound_json(sound).at("amin"));
  if (record.height != sound.mels || record.width != sound.frames() || record.channels != 1 ||
      record.element != "float32") {
    reader.refuse("the sounds have another shape than the samples");
  }
  record.sound = sound;
}

void read_input(const Json& json, const Reader& reader, Preprocessing& record) {
  record.height = reader.positive(json, "height");
  record.width = reader.positive(json, "width");
  record.channels = reader.positive(json, "channels");
  reader.expect(json, "channel_order", channel_order(record.channels));
  json.at("taken_as_is").get_to(record.taken_as_is);
  record.element =
      reader.choice<std::string>(json, "type", {{"uint8", "uint8"}, {"float16", "float16"}, {"float32", "float32"}});
  if (json.contains("sound")) read_sound_options(json.at("sound"), reader, record);
  if (json.contains("views")) record.views = reader.positive(json, "views");
  if (record.views > 2) reader.refuse(core::format("views is {}", record.views));
  if (!json.contains("frames")) return;
  record.frames = reader.positive(json, "frames");
  record.frame_sampling = reader.choice<FrameSampling>(
      json, "frame_sampling", {{"uniform", FrameSampling::uniform}, {"stride", FrameSampling::stride}});
  record.frame_stride = reader.positive(json, "frame_stride");
}

void read_predictions(const Json& json, const Reader& reader, Preprocessing& record) {
  const bool binned = json.at("rule") == "expectation";
  record.pose_head = binned ? PoseHead::binned : PoseHead::direct;
  if (binned) {
    record.pose_bins = reader.positive(json, "bins");
    json.at("range").get_to(record.pose_range);
  }
  if (json.contains("threshold")) {
    const Json& threshold = json.at("threshold");
    if (threshold.is_array() && threshold.size() == 1) reader.refuse("threshold is a list of 1 value");
    record.threshold =
        threshold.is_array() ? threshold.get<std::vector<double>>() : std::vector{threshold.get<double>()};
  }
  if (json.contains("temperature")) json.at("temperature").get_to(record.temperature);
  if (!(record.temperature > 0 && std::isfinite(record.temperature))) {
    reader.refuse(core::format("temperature is {}", record.temperature));
  }
  if (has_scaled_targets(record.task)) {
    json.at("scale").get_to(record.target_scale);
    json.at("mean").get_to(record.target_mean);
    if (record.target_scale.empty() || record.target_mean.empty()) reader.refuse("scale and mean have no value");
  }
  reader.expect(json, "rule", predictions_json(record).at("rule"));
}

/// Lists of one value that holds for all targets, or of one each; readers that allocate memory for outputs count names.
void require_per_target(const char* key, const std::vector<double>& values, const Preprocessing& record,
                        const Reader& reader) {
  const auto count = static_cast<int64_t>(values.size());
  if (count > 1 && count != record.num_classes) {
    reader.refuse(core::format("{} has {} values for {}", key, count, core::counted(record.num_classes, "target")));
  }
}

/// Numbers that float32 computes with: beyond them, predictions are infinite or not a number. `is_divisor`: also away
/// from zero.
void require_usual_numbers(const char* key, const std::vector<double>& values, bool is_divisor, const Reader& reader) {
  constexpr double kLeast = 1e-30, kMost = 1e30;
  for (const double value : values) {
    if (!std::isfinite(value)) reader.refuse(core::format("{} has a value that is not a finite number", key));
    const double size = std::abs(value);
    if (size > kMost || (is_divisor && size < kLeast)) {
      reader.refuse(core::format("{} has {}, which is out of range; accepted: up to {}{}", key, number_text(value),
                                 kMost, is_divisor ? core::format(", from {}", kLeast) : ""));
    }
  }
}

/// Names of labels and targets are columns of tables; classes of other programs may share one.
void require_different_names(const Preprocessing& record, const Reader& reader) {
  if (record.task == TaskKind::multiclass) return;
  std::vector<std::string> names = record.names;
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return;
  reader.refuse(core::format("{} has '{}' twice", names_key(record.task), core::printable(*twice)));
}

/// Fields that must have the same size in a complete record.
void require_sizes(const Preprocessing& record, const Reader& reader) {
  const auto names = static_cast<int64_t>(record.names.size()), outputs = record.num_classes;
  if (names > outputs) reader.refuse("there are more names than outputs");
  if (record.threshold.empty()) reader.refuse("threshold has no value");
  require_per_target("threshold", record.threshold, record, reader);
  require_per_target("scale", record.target_scale, record, reader);
  require_per_target("mean", record.target_mean, record, reader);
  if (record.mean.size() != record.std.size()) reader.refuse("mean and std differ in size");
  require_usual_numbers("threshold", record.threshold, /*is_divisor=*/false, reader);
  require_usual_numbers("scale", record.target_scale, /*is_divisor=*/true, reader);
  require_usual_numbers("mean of predictions", record.target_mean, /*is_divisor=*/false, reader);
  require_usual_numbers("mean", record.mean, /*is_divisor=*/false, reader);
  require_usual_numbers("std", record.std, /*is_divisor=*/true, reader);
  require_usual_numbers("temperature", {record.temperature}, /*is_divisor=*/true, reader);
  require_usual_numbers("range", record.input_range, /*is_divisor=*/false, reader);
  require_different_names(record, reader);
  constexpr int64_t kMaxNumbers = int64_t{1} << 28;  // of one sample
  int64_t numbers = std::max<int64_t>(1, record.frames) * record.views;
  for (const int64_t side : {record.channels, record.height, record.width}) {
    if (__builtin_mul_overflow(numbers, side, &numbers) || numbers > kMaxNumbers) {
      reader.refuse(core::format("samples of more than {} numbers are not known to this program", kMaxNumbers));
    }
  }
}

}  // namespace

Json to_json(const Preprocessing& record) {
  const bool is_bytes = record.element == "uint8";
  Json input = {{"height", record.height},     {"width", record.width},
                {"channels", record.channels}, {"channel_order", channel_order(record.channels)},
                {"type", record.element},      {"taken_as_is", record.taken_as_is}};
  if (!record.input_range.empty()) input["range"] = record.input_range;
  if (record.views > 1) input["views"] = record.views;
  if (record.frames > 0) {
    input["frames"] = record.frames;
    input["frame_sampling"] = record.frame_sampling == FrameSampling::uniform ? "uniform" : "stride";
    input["frame_stride"] = record.frame_stride;
  }
  if (record.sound) input["sound"] = sound_json(*record.sound);
  Json resize = resize_json(record);
  resize["filter"] = choice_name(filters(), record.interpolation);
  resize["antialias"] = true;
  Json json = {{"format", "stoker-preprocess"},
               {"version", version_of(record)},
               {"task", task_name(record.task)},
               {"num_classes", record.num_classes},
               {names_key(record.task), record.names},
               {"input", std::move(input)},
               {"resize", std::move(resize)},
               {"crop", {{"rule", choice_name(crops(), record.crop)}, {"share", record.crop_pct}}},
               {"normalize", {{"divide_by", is_bytes ? 255 : 1}, {"mean", record.mean}, {"std", record.std}}},
               {"predictions", predictions_json(record)}};
  return json;
}

Preprocessing preprocessing_from_json(const Json& json, const std::string& path) {
  const Reader reader(path);
  Preprocessing record;
  try {
    reader.expect(json, "format", "stoker-preprocess");
    if (json.at("version") != 1) reader.expect(json, "version", kVersion);
    record.task = reader.choice<TaskKind>(json, "task", task_choices());
    record.num_classes = reader.positive(json, "num_classes");
    json.at(names_key(record.task)).get_to(record.names);
    read_input(json.at("input"), reader, record);
    if (json.at("input").contains("range")) json.at("input").at("range").get_to(record.input_range);
    const Json& resize = json.at("resize");
    record.interpolation = reader.choice<Interpolation>(resize, "filter", filters());
    reader.expect(resize, "antialias", true);
    record.crop = reader.choice<EvalCrop>(json.at("crop"), "rule", crops());
    json.at("crop").at("share").get_to(record.crop_pct);
    if (!(record.crop_pct > 0 && record.crop_pct <= 1)) reader.refuse("the share of the crop is not in (0, 1]");
    const Json written = resize_json(record);
    for (const auto& [key, value] : written.items()) {
      if (key == "rule" || resize.contains(key)) reader.expect(resize, key.c_str(), value);
    }
    const Json& normalize = json.at("normalize");
    reader.expect(normalize, "divide_by", record.element == "uint8" ? 255 : 1);
    normalize.at("mean").get_to(record.mean);
    normalize.at("std").get_to(record.std);
    read_predictions(json.at("predictions"), reader, record);
  } catch (const Json::exception& error) {
    reader.refuse(core::problem_text(error));
  }
  require_sizes(record, reader);
  return record;
}

}  // namespace stoker::config
