// SPDX-License-Identifier: Apache-2.0
#include "commands/eval/evaluate_together.h"

#include <filesystem>
#include <iostream>
#include <iterator>
#include <sstream>

#include "core/error.h"
#include "core/format.h"
#include "core/system/file.h"
#include "data/dataset/hdf5_part.h"
#include "data/open_datasets.h"
#include "data/storage/tree_walk.h"
#include "engine/loop/group_exchange.h"
#include "train/failure/result_output.h"
#include "train/setup/assemble.h"

namespace stoker::train {

std::vector<std::string> output_names(const LoadedModel& loaded) {
  std::vector<std::string> names = loaded.saved.class_names;
  const int64_t outputs = loaded.options().data.num_classes;
  while (static_cast<int64_t>(names.size()) < outputs) names.push_back(core::format("output {}", names.size()));
  return names;
}

Outcome print_config(const LoadedModel& loaded) {
  write_result("-", config::render_yaml(*loaded.given, loaded.settings->resolution()));
  return {core::kExitOk, ""};
}

std::vector<data::BadSample> predict_together(const JoinedRanks& ranks, const LoadedModel& loaded,
                                              const LoadedVisitor& visit) {
  const config::ResolvedOptions& options = loaded.options();
  const auto feed = evaluation_feed(options, loaded.source, loaded.device, ranks.share());
  engine::predict_sharded(
      ranks.group(), *loaded.model, *feed, loaded.precision, options.train.tta,
      [&](const data::Batch& batch, const torch::Tensor& outputs) { visit(batch, outputs, feed->loader()); });
  return feed->loader().bad_samples();
}

void add_results(const LoadedModel& loaded, const data::Batch& batch, const torch::Tensor& outputs, ImageTable& table) {
  const torch::Tensor raw = outputs.to(torch::kCPU).contiguous();  // float32 [B, outputs]
  const torch::Tensor predictions =
      loaded.task->predictions(outputs).to(torch::kCPU).contiguous();        // float32 [B, names]
  const torch::Tensor labels = batch.labels.to(torch::kCPU);                 // int64 [B]
  const torch::Tensor targets = batch.targets.to(torch::kCPU).contiguous();  // float32 [B, T]
  if (raw.dim() != 2 || raw.size(0) != labels.size(0) || raw.size(1) != loaded.task->num_outputs()) {
    throw core::Error(core::ErrorKind::data,
                      core::format("{}: the network gives other outputs for some images than for others",
                                   core::printable(loaded.saved.path)));
  }
  for (int64_t i = 0; i < raw.size(0); ++i) {
    ImageResult result;
    result.path = loaded.source->name(batch.samples[static_cast<size_t>(i)]);
    result.label = labels.data_ptr<int64_t>()[i];
    result.targets = targets.data_ptr<float>() + i * targets.size(1);
    result.outputs = raw.data_ptr<float>() + i * raw.size(1);
    result.predictions = predictions.data_ptr<float>() + i * predictions.size(1);
    table.add(result);
  }
}

std::unique_ptr<ImageTable> image_table(const LoadedModel& loaded, const TableColumns& wanted) {
  const std::vector<std::string> names = output_names(loaded);
  engine::require_prediction_each(*loaded.task, loaded.options().data.task, names.size(), loaded.saved.path);
  return make_image_table(task_spec(loaded.options()), names, loaded.task->num_outputs(), wanted);
}

Outcome evaluate_on_devices(const Context& context, const RankWork& work) {
  log_to_stderr();
  if (context.configuration.flags.print_config) return work(JoinedRanks());
  return work_on_devices(context.argv, context.configuration.options, work);
}

namespace {

using core::Error;
using core::ErrorKind;

constexpr uint64_t kMaxListBytes = 1 << 30;

void add_lines(const std::string& text, std::vector<std::string>& paths) {
  for (const std::string& line : core::lines_of(text)) {
    if (!line.empty()) paths.push_back(line);
  }
}

/// Paths of the command line, with lists in their place.
std::vector<std::string> listed_inputs(const std::vector<std::string>& inputs) {
  std::vector<std::string> paths;
  for (const std::string& input : inputs) {
    if (input == "-") {
      add_lines({std::istreambuf_iterator<char>(std::cin), {}}, paths);
    } else if (input.size() > 1 && input[0] == '@') {
      add_lines(core::read_file(input.substr(1), kMaxListBytes), paths);
    } else {
      paths.push_back(input);
    }
  }
  if (paths.empty()) throw Error(ErrorKind::no_input, "the list of inputs is empty", "name images, one per line");
  return paths;
}

/// "val" of "a/val-000003.tar"; empty: no shard.
std::string shard_split(const std::string& path) {
  const std::string name = std::filesystem::path(path).stem().string();
  const size_t dash = name.find_last_of('-');
  return core::ends_with(path, ".tar") && dash != std::string::npos ? name.substr(0, dash) : "";
}

}  // namespace

std::shared_ptr<const data::Source> open_inputs(const std::vector<std::string>& inputs, config::DataOptions options,
                                                const std::vector<std::string>& trained) {
  const std::vector<std::string> paths = listed_inputs(inputs);
  const std::string& first = paths.front();
  const bool is_set = data::has_hdf5_name(first) || !shard_split(first).empty();
  if (is_set && paths.size() > 1) {
    throw Error(ErrorKind::usage, "HDF5 files and shards are predicted one at a time", "name one of them");
  }
  if (data::has_hdf5_name(first)) return data::open_labelled(options, first, "", trained);
  if (is_set) {
    const std::filesystem::path folder = std::filesystem::path(first).parent_path();
    options.dataset = config::DatasetType::shards;
    return data::open_labelled(options, folder.empty() ? "." : folder.string(), shard_split(first), trained);
  }
  const bool are_videos = paths.size() > 1 && std::all_of(paths.begin(), paths.end(), data::has_video_name);
  if (options.dataset != config::DatasetType::clips || are_videos) {
    return paths.size() == 1 && data::is_directory(first)
               ? data::open_loose_images(first, options.follow_symlinks, options)
               : data::open_loose_images(paths, options.follow_symlinks, options);
  }
  if (paths.size() == 1) return data::open_loose_videos(first, options);
  throw Error(ErrorKind::usage, "the network takes clips: several inputs cannot be predicted at once",
              "give several video files, a folder of frames, or a folder of such folders");
}

}  // namespace stoker::train
