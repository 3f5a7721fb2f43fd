// SPDX-License-Identifier: Apache-2.0
// HDF5 files in a build without the library: stands in for hdf5_file.cpp.
#include "core/error.h"
#include "core/format.h"
#include "data/container/hdf5_file.h"

namespace stoker::data {

struct Hdf5File::Impl {};

Hdf5File::Hdf5File(const std::string& path) {
  throw core::Error(core::ErrorKind::unavailable,
                    core::format("cannot read {}: this program was built without HDF5", core::printable(path)),
                    "install libhdf5-dev and build again; cmake says whether it found HDF5");
}
Hdf5File::~Hdf5File() = default;

// Never reached: there is no object.
const std::string& Hdf5File::path() const {
  static const std::string none;
  return none;
}
std::shared_ptr<const FileBytes> Hdf5File::bytes() const { return nullptr; }
bool Hdf5File::has_group(const std::string&) const { return false; }
bool Hdf5File::has_data_set(const std::string&) const { return false; }
std::vector<std::string> Hdf5File::data_set_lines() const { return {}; }
std::vector<std::string> Hdf5File::group_names() const { return {}; }
NumberArray Hdf5File::array(const std::string&) const { return {}; }
LabelArray Hdf5File::labels(const std::string&, int64_t) const { return {}; }

}  // namespace stoker::data
