// SPDX-License-Identifier: Apache-2.0
// Labelled data for evaluation, wherever it lies.
#include <filesystem>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/file.h"
#include "data/dataset/csv_manifest.h"
#include "data/dataset/hdf5_part.h"
#include "data/dataset/held_out.h"
#include "data/layout.h"
#include "data/open_datasets.h"
#include "data/storage/tree_walk.h"

namespace stoker::data {
namespace {

namespace fs = std::filesystem;

bool is_pose_data(const config::DataOptions& options) {
  return options.dataset == config::DatasetType::biwi || options.dataset == config::DatasetType::w300lp;
}

/// The layout that holds `split`; null: none does. It may be known by the training split beside it alone, as in data
/// sets with names of their own. By itself a split must have a place of its own: what a whole folder or file is, is the
/// training split, whatever it is called.
std::unique_ptr<Layout> layout_with(const config::DataOptions& options, const std::string& split) {
  config::DataOptions by_itself = options;
  by_itself.train_split = split;
  by_itself.val_split.reset();
  std::vector<config::DataOptions> requests = {by_itself, options};
  // Folders of subjects are divided by the run's rule alone.
  if (is_pose_data(options) && !is_directory(options.data_dir + "/" + split)) requests.erase(requests.begin());
  for (const config::DataOptions& requested : requests) {
    try {
      std::unique_ptr<Layout> layout = detect_layout(requested);
      if (layout->has_split(split)) return layout;
    } catch (const core::Error& error) {
      if (error.kind() != core::ErrorKind::no_input) throw;
    }
  }
  return nullptr;
}

std::shared_ptr<const Source> opened(const Layout& layout, const std::string& data_dir, const std::string& split,
                                     const std::vector<std::string>& learned) {
  core::log_info("data       split '{}', {}", core::printable(split), core::printable(data_dir));
  std::vector<std::string> notes;
  auto source = layout.open(split, learned.empty() ? layout.class_names(split) : learned, /*is_train=*/false, notes);
  require_images(*source, split);
  return source;
}

}  // namespace

std::shared_ptr<const Source> open_labelled(config::DataOptions options, const std::string& path,
                                            const std::string& split, const std::vector<std::string>& learned,
                                            DataOf owner) {
  if (holds_out(options)) options.val_split.reset();
  options.val_fraction = 0;
  const bool is_own = owner == DataOf::run;
  const bool is_clips = options.dataset == config::DatasetType::clips;
  const bool is_pose = is_pose_data(options);
  if (!is_clips && !is_pose && path != options.data_dir)
    options.dataset = config::DatasetType::automatic;  // other than in training, perhaps
  const fs::path place = fs::path(path).lexically_normal();
  std::vector<std::string> candidates = {split};
  if (split.empty()) {
    candidates = {std::begin(kValSplits), std::end(kValSplits)};
    if (options.val_split && options.val_split != config::kNoValidation)
      candidates.insert(candidates.begin(), *options.val_split);
    if (!is_own) candidates.push_back(options.train_split);
  }
  if (is_directory(path) || (has_hdf5_name(path) && core::file_exists(path))) {
    options.data_dir = path;
    for (const std::string& name : candidates) {
      // All subjects of other data, and not those that this run would hold out.
      if (is_pose && !is_own && !is_directory(path + "/" + name)) continue;
      if (const auto layout = layout_with(options, name)) return opened(*layout, options.data_dir, name, learned);
    }
    if (!split.empty() || (is_own && layout_with(options, options.train_split))) {
      throw core::Error(
          core::ErrorKind::no_input,
          core::format("{} has none of the splits {}", core::printable(path), core::list_text(candidates)),
          expected_data_tree(options));
    }
  }
  if (!is_directory(path)) {
    options.data_dir = place.has_parent_path() ? place.parent_path().string() : ".";
    if (!core::file_exists(path)) {
      throw core::Error(core::ErrorKind::no_input, core::printable(path) + " does not exist",
                        expected_data_tree(options));
    }
    const std::string name = has_list_name(path) ? place.filename().string() : place.stem().string();
    const std::unique_ptr<Layout> layout =
        has_list_name(path) || has_hdf5_name(path) ? layout_with(options, name) : nullptr;
    if (layout) return opened(*layout, options.data_dir, name, learned);
    throw core::Error(core::ErrorKind::data, core::printable(path) + " is not labelled data",
                      "give a folder, or a CSV or HDF5 file (.h5) with labels; train predict takes loose images");
  }
  // No splits: class folders lie in it.
  const fs::path folder = fs::absolute(place.has_filename() ? place : place.parent_path()).lexically_normal();
  options.data_dir = folder.parent_path().string();
  options.train_split = folder.filename().string();
  if (!is_clips && !is_pose) options.dataset = config::DatasetType::folder;
  return opened(*detect_layout(options), options.data_dir, options.train_split, learned);
}

}  // namespace stoker::data
