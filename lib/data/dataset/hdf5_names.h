// SPDX-License-Identifier: Apache-2.0
// What HDF5 files of data sets are called, and what is in them usually. Opens nothing.
#pragma once

#include <string>
#include <vector>

namespace stoker::data {

inline const std::vector<const char*> kUsualInputs = {"x", "X", "data", "images", "inputs", "spectrograms", "features"};
inline const std::vector<const char*> kUsualLabels = {"y", "Y", "labels", "label", "targets", "target"};

/// By extension: h5 or hdf5, in any case of letters.
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
