// SPDX-License-Identifier: Apache-2.0
#include "train/setup/teacher.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "config/table/table.h"
#include "config/task_facts.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/file.h"
#include "core/system/machine.h"
#include "engine/files/checkpoint_files.h"
#include "engine/saved/saved_model.h"
#include "engine/saved/weights.h"
#include "model/model.h"
#include "model/script/network_library.h"
#include "train/setup/network_file.h"

namespace stoker::train {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;

/// The network of a checkpoint, as this run computes it.
struct TeacherRun {
  std::string checkpoint;
  config::ResolvedOptions options;
  config::Preprocessing record;
};

std::string checkpoint_of(const std::string& teacher) { return engine::find_checkpoint(teacher, "best"); }

/// Without its weights.
engine::SavedModel description_of(const std::string& checkpoint) {
  engine::SavedModel saved;
  saved.path = checkpoint;
  saved.extra = engine::read_manifest(checkpoint).extra;
  saved.config_yaml = core::read_file(checkpoint + "/" + engine::kConfigFile, engine::kMaxTextBytes);
  const std::string record = checkpoint + "/" + engine::kPreprocessFile;
  if (core::file_exists(record)) {
    saved.preprocess = core::parse_json(core::read_file(record, engine::kMaxTextBytes), record);
  }
  return saved;
}

void require_same_input(const config::ResolvedOptions& student, const TeacherRun& teacher) {
  const auto refuse = [&](const std::string& why, const std::string& hint) {
    throw Error(ErrorKind::config, format("--teacher {}: {}", core::printable(student.model.teacher), why), hint);
  };
  const config::Preprocessing& record = teacher.record;
  if (record.task != config::TaskKind::multiclass) {
    refuse(format("its task is {}, but probabilities of classes are learned", config::task_name(record.task)),
           "name a run of the task multiclass");
  }
  if (record.channels != student.data.in_chans) {
    refuse(format("it sees {} channels, this run {}", record.channels, student.data.in_chans),
           format("set --in-chans {}, or name another run", record.channels));
  }
  if (model::takes_clips(teacher.options.model.model) != model::takes_clips(student.model.model)) {
    refuse(format("{} and {} do not see the same: one takes clips, the other single images",
                  teacher.options.model.model, student.model.model),
           "name a run whose network takes the same samples");
  }
  const config::ImageSize own = student.data.img_size, theirs = {record.height, record.width};
  const bool is_vit = teacher.options.model.model.rfind("vit_", 0) == 0;
  if (is_vit && !(own == theirs)) {
    refuse(format("{} was trained on images of {} pixels and takes no others, this run has {}",
                  teacher.options.model.model, config::image_size_text(theirs), config::image_size_text(own)),
           "set --img-size " + config::image_size_text(theirs) + ", or name a run of a convolutional network");
  }
}

TeacherRun run_of_teacher(const config::ResolvedOptions& student) {
  TeacherRun run;
  run.checkpoint = checkpoint_of(student.model.teacher);
  config::Configuration given;
  given.trains = false;
  const auto [saved, record] = deploy::read_checkpoint(description_of(run.checkpoint), given);
  if (!record) {
    throw Error(ErrorKind::data, format("{} has no preprocess.json: an older program wrote it", saved.path),
                "name a run of this version, or export that one: train export --format torchscript");
  }
  use_network_file_of_run(saved.path, saved.extra, given);
  config::Facts facts = deploy::first_facts(given, core::read_machine_facts());
  run.options = deploy::settle(given.options, facts, config::facts_of(*record)).options;
  run.record = *record;
  run.options.model.lora = 0;  // its weights are merged
  run.options.precision = student.precision;
  run.options.device = student.device;
  require_same_input(student, run);
  run.options.data.img_size = student.data.img_size;
  return run;
}

bool is_file_of_teacher(const config::ResolvedOptions& options) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(options.model.teacher, ignored);
}

model::ModelSpec spec_of_file(const config::ResolvedOptions& options) {
  model::ModelSpec spec;
  const std::string& path = options.model.teacher;
  spec.name = model::is_network_file(path) ? path : "./" + path;
  spec.in_chans = options.data.in_chans;
  spec.num_classes = options.data.num_classes;
  spec.img_size = options.data.img_size;
  return spec;
}

/// The teacher's output of each class; empty where they have one order.
std::vector<int64_t> rows_of_classes(const config::ResolvedOptions& options, const std::vector<std::string>& theirs,
                                     const std::vector<std::string>& classes) {
  std::vector<int64_t> rows;
  std::vector<std::string> missing;
  for (const std::string& name : classes) {
    const auto found = std::find(theirs.begin(), theirs.end(), name);
    if (found == theirs.end()) missing.push_back("'" + core::printable(name) + "'");
    rows.push_back(found - theirs.begin());
  }
  const std::string& teacher = options.model.teacher;
  if (!missing.empty()) {
    throw Error(
        ErrorKind::config,
        format("--teacher {}: {} of the {} classes of this run are none of its {}: {}", core::printable(teacher),
               missing.size(), classes.size(), theirs.size(), core::list_text(missing)),
        "name a run that was trained on classes of the same names");
  }
  if (!classes.empty() && static_cast<int64_t>(classes.size()) != options.data.num_classes) {
    throw Error(ErrorKind::config,
                format("--teacher needs a name for each class, but --num-classes is {} and the data have {}",
                       options.data.num_classes, classes.size()),
                "leave --num-classes out");
  }
  return theirs == classes ? std::vector<int64_t>() : rows;
}

/// From images normalised as in this run to those of the teacher's.
void set_normalisation(const config::ResolvedOptions& student, const config::Preprocessing& record,
                       torch::Device device, engine::TeacherSettings& settings) {
  const auto channels = static_cast<size_t>(student.data.in_chans);
  const auto row = [&](const std::vector<double>& values) {
    return torch::tensor(config::for_channels(values, channels), at::kDouble).view({-1, 1, 1});
  };
  const torch::Tensor mean = row(student.data.mean), deviation = row(student.data.std);
  const torch::Tensor their_mean = row(record.mean), their_deviation = row(record.std);
  if (mean.equal(their_mean) && deviation.equal(their_deviation)) return;
  settings.scale = (deviation / their_deviation).to(at::kFloat).to(device);
  settings.offset = ((mean - their_mean) / their_deviation).to(at::kFloat).to(device);
}

}  // namespace

void require_teacher(const config::ResolvedOptions& options) {
  if (!options.model.teacher.empty() && !is_file_of_teacher(options)) checkpoint_of(options.model.teacher);
}

void require_fitting_teacher(const config::ResolvedOptions& options, const std::vector<std::string>& classes) {
  if (options.model.teacher.empty() || is_file_of_teacher(options)) return;
  rows_of_classes(options, run_of_teacher(options).record.names, classes);
}

void add_teacher(const config::ResolvedOptions& options, deploy::NetworkUse& use) {
  if (options.model.teacher.empty()) return;
  if (is_file_of_teacher(options)) {
    use.teachers = {spec_of_file(options)};
    use.teacher_digest = model::read_network_file(options.model.teacher).sha256;
    return;
  }
  const TeacherRun run = run_of_teacher(options);
  use.teachers = {deploy::model_spec(run.options)};
  if (!model::is_network_file(run.options.model.model)) return;
  use.teacher_digest = model::read_network_file(run.options.model.model).sha256;
}

void identify_teacher(const config::ResolvedOptions& options, engine::RunIdentity& identity) {
  if (options.model.teacher.empty()) return;
  config::ResolvedOptions copy = options;
  const config::Table table(copy);
  const std::string& name = table.row_of(copy.model.teacher).name;
  for (config::TrainingOption& option : identity.training_options) {
    if (option.name != name) continue;
    option.value = is_file_of_teacher(options)
                       ? "TorchScript, SHA-256 " + model::read_network_file(options.model.teacher).sha256
                       : "checkpoint " + engine::checkpoint_digest(checkpoint_of(options.model.teacher));
  }
}

std::shared_ptr<engine::Teacher> open_teacher(const config::ResolvedOptions& options, torch::Device device,
                                              const std::vector<std::string>& classes) {
  if (options.model.teacher.empty()) return nullptr;
  engine::TeacherSettings settings;
  settings.share = options.train.distill_share;
  settings.temperature = options.train.distill_temperature;
  if (is_file_of_teacher(options)) {
    const std::shared_ptr<model::ImageModel> network = model::make_model(spec_of_file(options));
    network->to(device);
    if (options.precision.channels_last) model::to_channels_last(*network);
    return std::make_shared<engine::Teacher>(network, settings);
  }
  const TeacherRun run = run_of_teacher(options);
  if (!classes.empty()) settings.rows = rows_of_classes(options, run.record.names, classes);
  set_normalisation(options, run.record, device, settings);
  const std::shared_ptr<model::ImageModel> network = deploy::build_model(run.options, device);
  engine::load_weights(*network, engine::load_saved_model(run.checkpoint).weights, run.checkpoint);
  return std::make_shared<engine::Teacher>(network, settings);
}

std::string teacher_text(const config::ResolvedOptions& options) {
  if (options.model.teacher.empty()) return "";
  const std::string network =
      is_file_of_teacher(options) ? "" : format(" ({})", run_of_teacher(options).options.model.model);
  return format("{}{}, {:g} of the loss at temperature {:g}", core::printable(options.model.teacher), network,
                options.train.distill_share, options.train.distill_temperature);
}

}  // namespace stoker::train
