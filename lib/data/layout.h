// SPDX-License-Identifier: Apache-2.0
// The ways in which a data folder may be laid out, behind one interface. Hold-out splits: open_datasets.h.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "config/options.h"
#include "core/error.h"
#include "data/source.h"

namespace stoker::data {

using ColumnValues = std::vector<std::pair<std::string, std::string>>;

class Layout {
 public:
  virtual ~Layout() = default;
  virtual bool has_split(const std::string& split) const = 0;
  /// Class names as the training split defines them, or names of targets where the task learns numbers.
  /// Throws core::Error.
  virtual std::vector<std::string> class_names(const std::string& train_split) const = 0;
  /// Opens a split whose labels index `class_names` (or whose targets have these names). What was left out of the
  /// scan goes to `notes`. With `is_train`, a class without images is an error. Throws core::Error,
  /// core::StopRequested.
  virtual std::shared_ptr<const Source> open(const std::string& split, const std::vector<std::string>& class_names,
                                             bool is_train, std::vector<std::string>& notes) const = 0;
  /// The path of each row of the list of a split and its value in a column; nothing where there is no list or column.
  virtual ColumnValues column(const std::string& /*split*/, const std::string& /*name*/) const { return {}; }
  /// Hints where a split is missing: lines for the error; empty: nothing to add.
  virtual std::string found_text() const { return ""; }

  /// Which layout it is; automatic before detect_layout().
  config::DatasetType type = config::DatasetType::automatic;
  /// Names that were found instead of the usual ones, a line to print once; empty: nothing.
  std::string note;
};

using SplitNames = std::map<std::string, std::string>;  ///< from the name requested to the one that is there

/// Requests splits of `layout` by their names there; others keep theirs.
std::unique_ptr<Layout> make_renamed_layout(std::unique_ptr<Layout> layout, SplitNames names);
std::unique_ptr<Layout> make_idx_layout(const config::DataOptions& options);
/// CIFAR-10 and CIFAR-100 as their archives unpack.
std::unique_ptr<Layout> make_cifar_layout(const config::DataOptions& options);
/// Images and labels in .npy files or a .npz file.
std::unique_ptr<Layout> make_numpy_layout(const config::DataOptions& options);
/// `root` stands for the split named train_split when the class folders lie directly in data_dir.
std::unique_ptr<Layout> make_folder_layout(const config::DataOptions& options, bool root_is_train);
std::unique_ptr<Layout> make_csv_layout(const config::DataOptions& options);
std::unique_ptr<Layout> make_shard_layout(const config::DataOptions& options);
/// Folders of frames; `root_is_train` as above.
std::unique_ptr<Layout> make_clip_layout(const config::DataOptions& options, bool root_is_train);
/// Whether the first class folder holds no images, and its first folder frames that are called so.
bool looks_like_clips(const config::DataOptions& options);
/// The tree of such folders, for error messages.
std::string expected_clips(const config::DataOptions& options);
/// CSV with a column per target, for tasks that learn numbers.
std::unique_ptr<Layout> make_csv_target_layout(const config::DataOptions& options);
/// A CSV file itself as data_dir: the training split, by whatever name; other splits are files beside it.
std::unique_ptr<Layout> make_csv_file_layout(const config::DataOptions& options);
/// HDF5 files: one per split, or one with a group per split.
std::unique_ptr<Layout> make_hdf5_layout(const config::DataOptions& options);
/// Public head pose data: BIWI, 300W-LP, AFLW2000.
std::unique_ptr<Layout> make_pose_layout(const config::DataOptions& options);

// Which layout a data folder has.

/// The layout that `options.dataset` names, else the first that the folder shows signs of: IDX, CSV, shards, an HDF5
/// file of the training split, class folders (of images or of videos), one HDF5 file. Throws core::Error{no_input} with
/// the expected tree where there is none.
std::unique_ptr<Layout> detect_layout(const config::DataOptions& options);

/// Usual names of the split that validates, the first that exists is taken.
inline constexpr const char* kValSplits[] = {"val", "validation", "valid", "test", "t10k"};

/// Throws core::Error{data} for a split without images.
void require_images(const Source& source, const std::string& split);

/// The layouts that are accepted below --data-dir, in lines: the hint of errors about missing data.
std::string expected_data_tree(const config::DataOptions& options);
/// An error about what lies in the data folder. `steps` end what is printed, behind the layouts that are expected;
/// without steps these are the hint.
core::Error layout_error(core::ErrorKind kind, const std::string& message, const config::DataOptions& options,
                         std::string steps);

// The content of a folder without a supported data set, and the next step, for messages.

/// A sentence per kind of thing that was found, each with a line end; empty: nothing that has a name. Steps for the
/// files of a class folder are those for all class folders beside it.
std::string found_text(const std::string& folder, bool is_class = false);
/// The same of one file, without a line end: "is a zip archive: unpack it (unzip photos.zip)".
std::string file_found_text(const std::string& path);
/// The step for a list whose columns hold pixels, as those of Kaggle's digits and of fer2013; empty: they hold none.
std::string pixels_step(const std::string& path, const std::vector<std::string>& header);

}  // namespace stoker::data
