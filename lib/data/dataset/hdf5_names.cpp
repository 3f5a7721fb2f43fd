// SPDX-License-Identifier: Apache-2.0
#include "data/dataset/hdf5_names.h"
#include "core/system/file_system.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

namespace stoker::data {
namespace {

namespace fs = std::filesystem;

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

}  // namespace

bool has_hdf5_name(const std::string& path) {
  std::string extension = fs::path(path).extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return extension == ".h5" || extension == ".hdf5";
}

std::string hdf5_file_of(const std::string& data_dir, const std::string& split) {
  for (const char* const extension : {".h5", ".hdf5", ".H5", ".HDF5"}) {
    const std::string path = data_dir + "/" + split + extension;
    if (is_file(path)) return path;
  }
  return "";
}

std::vector<std::string> hdf5_files_in(const std::string& data_dir) {
  constexpr size_t kMax = 40;
  if (is_file(data_dir)) return {data_dir};
  std::vector<std::string> files;
  std::vector<core::DirectoryEntry> entries;
  core::posix_file_system().list(data_dir, entries);  // a folder that cannot be listed has none
  for (const core::DirectoryEntry& entry : entries) {
    const std::string path = (fs::path(data_dir) / entry.name).string();
    if (has_hdf5_name(path) && is_file(path)) files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  if (files.size() > kMax) files.resize(kMax);
  return files;
}

std::string only_hdf5_file(const std::string& data_dir) {
  if (is_file(data_dir)) return has_hdf5_name(data_dir) ? data_dir : "";
  const std::vector<std::string> files = hdf5_files_in(data_dir);
  return files.size() == 1 ? files.front() : "";
}

}  // namespace stoker::data
