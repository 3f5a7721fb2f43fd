// SPDX-License-Identifier: Apache-2.0
// The front door to data: from options to sources. Each function finds the layout of the folder by itself.
// One thread; scanning may take minutes, and a stop request ends it with core::StopRequested.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "config/options.h"
#include "data/source.h"

namespace stoker::data {

/// The two splits of a training run.
struct Datasets {
  std::shared_ptr<const Source> train;
  std::shared_ptr<const Source> val;  ///< without validation a training sample, which nobody evaluates
  bool has_validation = true;
  std::vector<std::string> notes;  ///< for the banner: skipped entries, which split was chosen and why
  config::DatasetType type = config::DatasetType::automatic;  ///< layout of the data; never automatic once it is open
};

/// Opens and scans the training and validation splits: IDX (plain or .gz), class-per-folder, clips, shards, HDF5, or
/// CSV manifest (`path,label`, or `path` and a column per target as the task wants it). Sorted, symlink-loop-safe,
/// labels checked. Throws core::Error (no_input with the expected tree, data with file:line).
Datasets open_datasets(const config::DataOptions& options);

/// One split by name, as `train eval --split` wants it; labels are those of the training split's classes. Throws as
/// open_datasets().
std::shared_ptr<const Source> open_split(const config::DataOptions& options, const std::string& split);

using NamedSources = std::vector<std::pair<std::string, std::shared_ptr<const Source>>>;

/// Splits with their names and the classes of the training split, nothing held out, as `train pack` wants them: those
/// named, or the training split and every usual validation split that exists. Throws core::Error{config} for data that
/// shards cannot hold, else as open_datasets().
NamedSources open_whole_splits(const config::DataOptions& options, std::vector<std::string> names,
                               std::vector<std::string>& notes);

/// The training split and the one that validates, as a run would have them, then every other usual split that exists.
/// Data without a validation split is not an error here, and classes may lack images. Throws as open_datasets().
NamedSources open_every_split(const config::DataOptions& options, std::vector<std::string>& notes);

/// Whether data is that which a run was trained on.
enum class DataOf { run, others };

/// Labelled data wherever it lies, with the labels of a network: a folder of class folders, of splits (`split`,
/// or when that is empty the validation split that `options` names, a usual one, or of others the training split), of
/// shards or IDX files, or one CSV or HDF5 file. A class may lack samples; one that is not in `learned` is an error;
/// with `learned` empty the classes are those of the data. Throws as open_datasets().
std::shared_ptr<const Source> open_labelled(config::DataOptions options, const std::string& path,
                                            const std::string& split, const std::vector<std::string>& learned,
                                            DataOf owner = DataOf::others);

/// Loose images of a folder (recursively) or one file, without labels, for prediction. Throws core::Error{no_input}.
std::shared_ptr<const Source> open_loose_images(const std::string& path, bool follow_symlinks,
                                                const config::DataOptions& options = {});
/// Several of them, each of which may be a pattern of glob(3) where no file is called so. Names are paths as given.
std::shared_ptr<const Source> open_loose_images(const std::vector<std::string>& paths, bool follow_symlinks,
                                                const config::DataOptions& options = {});

/// Loose videos for prediction: a video file, or a folder, where each file or each folder with images is one. Frames
/// are chosen by `options`. Throws core::Error{no_input}.
std::shared_ptr<const Source> open_loose_videos(const std::string& path, const config::DataOptions& options);

}  // namespace stoker::data
