// SPDX-License-Identifier: Apache-2.0
// What one HDF5 file has of a split: samples of one shape, and their labels as numbers.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/options.h"
#include "data/container/hdf5_file.h"
#include "data/container/sample_array.h"
#include "data/sample_shape.h"
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
  SampleShape shape;            ///< of a sample, as the network gets it
  bool channels_first = false;  ///< as stored
  std::vector<std::string> notes;

  /// Throws core::Error{data} that names the file and its labels.
  [[noreturn]] void fail_labels(const std::string& cause, const std::string& hint = "") const;
};

/// Opens one of `files` that are read together, or its copy where there are `copies`, and reads its labels. Throws
/// core::Error.
Hdf5Part open_hdf5_part(const config::DataOptions& options, const Hdf5Place& place, int64_t files,
                        std::shared_ptr<const StagedFiles> copies);

}  // namespace stoker::data
