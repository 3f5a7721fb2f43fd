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
/// The file of a split in a folder; "" when there is none.
std::string hdf5_file_of(const std::string& data_dir, const std::string& split);
/// `data_dir` itself where it is an HDF5 file, or the only one in it; "" when there is none or there are
/// several.
std::string only_hdf5_file(const std::string& data_dir);
/// The files of a folder, by name, for messages; at most 40.
std::vector<std::string> hdf5_files_in(const std::string& data_dir);

}  // namespace stoker::data
