// SPDX-License-Identifier: Apache-2.0
#include "data/detect_layout.h"

#include <algorithm>

#include "config/task_facts.h"
#include "core/error.h"
#include "core/format.h"
#include "core/system/file.h"
#include "core/system/file_system.h"
#include "data/dataset/hdf5_names.h"
#include "data/storage/tree_walk.h"

namespace stoker::data {
namespace {

constexpr size_t kMaxNamed = 5;

/// Whether data_dir is a CSV file instead of a folder.
bool is_csv_file(const config::DataOptions& options) {
  const bool may_be = options.dataset == config::DatasetType::automatic || options.dataset == config::DatasetType::csv;
  return may_be && core::ends_with(options.data_dir, ".csv") && !is_directory(options.data_dir);
}

std::unique_ptr<Layout> csv_layout(const config::DataOptions& options) {
  if (is_csv_file(options)) return make_csv_file_layout(options);
  return config::learns_numbers(options.task) ? make_csv_target_layout(options) : make_csv_layout(options);
}

bool has_class_folders(const config::DataOptions& options) {
  ScanNotes ignored;
  return !TreeWalker(options.follow_symlinks, ignored).folders_in(options.data_dir).empty();
}

/// The CSV files of a folder of which none is a split, as a sentence for a hint; empty: there is none.
std::string csv_files_text(const config::DataOptions& options) {
  std::vector<core::DirectoryEntry> entries;
  core::posix_file_system().list(options.data_dir, entries);
  std::vector<std::string> names;
  for (const core::DirectoryEntry& entry : entries) {
    if (core::ends_with(entry.name, ".csv")) names.push_back(entry.name);
  }
  if (names.empty()) return "";
  std::sort(names.begin(), names.end());
  const std::string first = core::printable(names.front());
  if (names.size() > kMaxNamed) names.resize(kMaxNamed);
  return core::format("it holds {}: to train on one, --data-dir {}/{} with --val-fraction 0.1\n",
                      core::list_text(names), core::printable(options.data_dir), first);
}

/// Where images lie in the folder itself, a sentence for a hint; empty: none do.
std::string loose_images_text(const config::DataOptions& options) {
  std::vector<core::DirectoryEntry> entries;
  core::posix_file_system().list(options.data_dir, entries);
  const auto count = std::count_if(entries.begin(), entries.end(),
                                   [](const core::DirectoryEntry& entry) { return has_image_name(entry.name); });
  if (count == 0) return "";
  return core::format(
      "{} lie{} in it, but no folder per class: give the folder above, or list images with their classes "
      "in a CSV file; train predict takes loose images\n",
      core::counted(static_cast<int64_t>(count), "image"), count == 1 ? "s" : "");
}

void check_data_dir(const config::DataOptions& options) {
  if (is_directory(options.data_dir)) return;
  if (core::file_exists(options.data_dir) && (has_hdf5_name(options.data_dir) || is_csv_file(options))) {
    return;  // the file itself
  }
  const char* const cause = core::file_exists(options.data_dir) ? "is not a folder" : "does not exist";
  throw core::Error(core::ErrorKind::no_input,
                    core::format("the data folder {} {}", core::printable(options.data_dir), cause),
                    expected_data_tree(options));
}

/// Of class folders with images, or of those with videos.
std::unique_ptr<Layout> folder_layout(const config::DataOptions& options, bool has_videos) {
  const bool has_train = is_directory(options.data_dir + "/" + options.train_split);
  if (!has_train && has_class_folders(options) && options.val_fraction <= 0) {
    throw core::Error(core::ErrorKind::no_input,
                      core::format("{} has folders, but none is called '{}'", core::printable(options.data_dir),
                                   core::printable(options.train_split)),
                      csv_files_text(options) +
                          "if they are class folders, hold a part out with --val-fraction 0.1; if one of them is the "
                          "training split, name it with --train-split\n" +
                          expected_data_tree(options));
  }
  return has_videos ? make_clip_layout(options, /*root_is_train=*/!has_train)
                    : make_folder_layout(options, /*root_is_train=*/!has_train);
}

}  // namespace

std::string expected_data_tree(const config::DataOptions& options) {
  if (options.dataset == config::DatasetType::clips) return expected_clips(options);
  const std::string& train = options.train_split;
  const bool is_pose = options.task == config::TaskKind::head_pose;
  return core::format(
      "expected below --data-dir one of\n"
      "  IDX:    {0}-images-idx3-ubyte[.gz], {0}-labels-idx1-ubyte[.gz], and the same for t10k\n"
      "  folder: {0}/<class>/*.jpg and val/<class>/*.jpg (JPEG, PNG, BMP, WebP, TIFF, GIF, PNM)\n"
      "  CSV:    {0}.csv and val.csv with the columns path,label{1}, or one .csv file\n"
      "  clips:  {0}/<class>/<video>/frame_0001.jpg and the same for val (other names of frames: --dataset clips)\n"
      "  shards: {0}-000000.tar and val-000000.tar as train pack or WebDataset write them\n"
      "  HDF5:   {0}.h5 and val.h5, or of each several ({0}-*.h5, {0}/*.h5), or one .h5 with the groups\n"
      "          {0} and val; in each a data set x, data, images, inputs, spectrograms or\n"
      "          features [N, H, W] or [N, C, H, W] and one y, labels or targets [N]{2}",
      train, is_pose ? " or path,yaw,pitch,roll" : "",
      is_pose
          ? "\n  --dataset 300wlp: <split>/**/<name>.jpg and <name>.mat (--train-split 300W_LP --val-split AFLW2000)\n"
            "  --dataset biwi:   <subject>/frame_00003_rgb.png and frame_00003_pose.txt"
          : "");
}

std::unique_ptr<Layout> detect_layout(const config::DataOptions& options) {
  using Type = config::DatasetType;
  check_data_dir(options);
  const auto as = [](Type type, std::unique_ptr<Layout> layout) {
    layout->type = type;
    return layout;
  };
  switch (options.dataset) {
    case Type::idx: return as(Type::idx, make_idx_layout(options));
    case Type::csv: return as(Type::csv, csv_layout(options));
    case Type::folder: return as(Type::folder, folder_layout(options, /*has_videos=*/false));
    case Type::clips: return as(Type::clips, folder_layout(options, /*has_videos=*/true));
    case Type::shards: return as(Type::shards, make_shard_layout(options));
    case Type::biwi:
    case Type::w300lp: return as(options.dataset, make_pose_layout(options));
    case Type::hdf5: return as(Type::hdf5, make_hdf5_layout(options));
    case Type::automatic: break;
  }
  if (!is_directory(options.data_dir)) {
    return is_csv_file(options) ? as(Type::csv, csv_layout(options)) : as(Type::hdf5, make_hdf5_layout(options));
  }
  auto idx = make_idx_layout(options);
  if (idx->has_split(options.train_split)) return as(Type::idx, std::move(idx));
  auto csv = csv_layout(options);
  if (csv->has_split(options.train_split)) return as(Type::csv, std::move(csv));
  auto shards = make_shard_layout(options);
  if (shards->has_split(options.train_split)) return as(Type::shards, std::move(shards));
  if (!hdf5_files_of(options.data_dir, options.train_split).empty()) return as(Type::hdf5, make_hdf5_layout(options));
  if (has_class_folders(options)) {
    const bool has_videos = looks_like_clips(options);
    return as(has_videos ? Type::clips : Type::folder, folder_layout(options, has_videos));
  }
  if (!whole_hdf5_files(options.data_dir).empty()) return as(Type::hdf5, make_hdf5_layout(options));
  throw core::Error(core::ErrorKind::no_input,
                    core::format("{} holds no data set that is known here", core::printable(options.data_dir)),
                    loose_images_text(options) + csv_files_text(options) + expected_data_tree(options));
}

}  // namespace stoker::data
