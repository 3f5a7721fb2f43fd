// SPDX-License-Identifier: Apache-2.0
#include "data/dataset/hdf5_names.h"

#include <algorithm>
#include <filesystem>

#include "core/format.h"
#include "core/system/file_system.h"
#include "data/storage/natural_order.h"

namespace stoker::data {
namespace {

namespace fs = std::filesystem;

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// In the order in which people number files; a folder that cannot be listed has none.
std::vector<std::string> files_by_number(const std::string& folder) {
  std::vector<core::DirectoryEntry> entries;
  core::posix_file_system().list(folder, entries);
  std::vector<std::string> names;
  for (const core::DirectoryEntry& entry : entries) names.push_back(entry.name);
  std::sort(names.begin(), names.end(), comes_before);
  return names;
}

}  // namespace

bool has_hdf5_name(const std::string& path) {
  const std::string extension = core::lower_case(fs::path(path).extension().string());
  return extension == ".h5" || extension == ".hdf5";
}

std::vector<std::string> hdf5_files_in(const std::string& data_dir) {
  if (is_file(data_dir)) {
    if (has_hdf5_name(data_dir)) return {data_dir};
    return {};
  }
  std::vector<std::string> files;
  for (const std::string& name : files_by_number(data_dir)) {
    const std::string path = (fs::path(data_dir) / name).string();
    if (has_hdf5_name(path) && is_file(path)) files.push_back(path);
  }
  return files;
}

std::vector<std::string> hdf5_files_of(const std::string& data_dir, const std::string& split) {
  std::vector<std::string> numbered;
  for (const std::string& path : hdf5_files_in(data_dir)) {
    const std::string stem = fs::path(path).stem().string();
    if (path == data_dir) continue;
    if (stem == split) return {path};
    if (stem.rfind(split + "-", 0) == 0 || stem.rfind(split + "_", 0) == 0) numbered.push_back(path);
  }
  if (!numbered.empty()) return numbered;
  const std::string folder = (fs::path(data_dir) / split).string();
  const std::vector<std::string> names = files_by_number(folder);
  std::error_code ignored;
  const auto is_folder = [&](const std::string& name) { return fs::is_directory(fs::path(folder) / name, ignored); };
  if (std::any_of(names.begin(), names.end(), is_folder)) return {};
  return hdf5_files_in(folder);
}

std::vector<std::string> whole_hdf5_files(const std::string& data_dir) {
  const std::vector<std::string> files = hdf5_files_in(data_dir);
  if (files.size() < 2) return files;
  for (const char* const split : {"train", "val", "valid", "validation", "test", "eval", "dev"}) {
    if (!hdf5_files_of(data_dir, split).empty()) return {};
  }
  return files;
}

}  // namespace stoker::data
