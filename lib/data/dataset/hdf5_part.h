// SPDX-License-Identifier: Apache-2.0
// The part of a split in one HDF5 file: samples of one shape, and their labels as numbers.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/options.h"
#include "data/container/hdf5_file.h"
#include "data/container/sample_array.h"
#include "data/source.h"
#include "data/storage/staged_files.h"

namespace stoker::data {

/// A file and the group in it that holds the split; the root where it is the whole file.
struct Hdf5Place {
  std::string path, group;
  std::string inside(const std::string& name) const { return group.empty() ? name : group + "/" + name; }
  std::string text() const { return group.empty() ? path : path + ":" + group; }
};

struct Hdf5Part {
  Hdf5Place place;
  std::shared_ptr<const StagedFiles> staged;  ///< the copies that are read; null where there are none
  std::shared_ptr<const SampleArray> array;
  LabelArray labels;
  SampleShape shape;            ///< shape of a sample, as the network gets it
  bool channels_first = false;  ///< as stored
  std::vector<std::string> notes;

  /// Throws core::Error{data} that names the file and its labels.
  [[noreturn]] void fail_labels(const std::string& cause, const std::string& hint = "") const;
};

/// Opens one of `files` that are read together, or its copy where there are `copies`, and reads its labels. Throws
/// core::Error.
Hdf5Part open_hdf5_part(const config::DataOptions& options, const Hdf5Place& place, int64_t files,
                        std::shared_ptr<const StagedFiles> copies);

// Usual names of HDF5 files and of the data sets in them. Opens nothing.

inline const std::vector<const char*> kUsualInputs = {"x", "X", "data", "images", "inputs", "spectrograms", "features"};
inline const std::vector<const char*> kUsualLabels = {"y", "Y", "labels", "label", "targets", "target"};

/// By extension: h5, hdf5, he5 or hdf, in any case of letters.
bool has_hdf5_name(const std::string& path);
/// The files of a split in a folder, by name: <split>.h5, else <split>-*.h5 and <split>_*.h5, else those of the folder
/// <split>, unless that has folders. None: empty.
std::vector<std::string> hdf5_files_of(const std::string& data_dir, const std::string& split);
/// `data_dir` itself where it is an HDF5 file, or all of the folder, by name; none where one of several is called as
/// splits are.
std::vector<std::string> whole_hdf5_files(const std::string& data_dir);
/// The files of a folder, by name; the file itself where it is one.
std::vector<std::string> hdf5_files_in(const std::string& data_dir);

}  // namespace stoker::data
