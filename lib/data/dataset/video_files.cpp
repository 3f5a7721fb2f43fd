// SPDX-License-Identifier: Apache-2.0
#include "data/dataset/video_files.h"

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/format.h"
#include "data/dataset/file_source.h"

namespace stoker::data {
namespace {

/// Its name without folders and extension.
std::string stem_of_video(const std::string& path) {
  const std::string name = path.substr(path.find_last_of('/') + 1);  // npos + 1 is 0
  return name.substr(0, name.find_last_of('.'));
}

bool is_in_high_quality(const std::string& path) { return stem_of_video(path) == "hq"; }
bool is_of_pair(const std::string& path) { return is_in_high_quality(path) || stem_of_video(path) == "lq"; }

}  // namespace

std::string VideoFiles::shown(const std::string& path) const { return core::printable(directory_ + "/" + path); }

/// Each in high quality, then its partner.
std::vector<VideoFiles::File> VideoFiles::paired() const {
  struct Pair {
    const File *high = nullptr, *low = nullptr;
  };
  std::map<std::string, Pair> pairs;  // by folder
  std::vector<std::string> order;
  for (const File& file : files_) {
    if (!is_of_pair(file.path)) {
      throw core::Error(core::ErrorKind::data,
                        core::format("{} is no pair, but others are called hq and lq", shown(file.path)),
                        "give every video a folder with hq and lq, or none");
    }
    const size_t slash = file.path.find_last_of('/');
    const std::string folder = slash == std::string::npos ? "" : file.path.substr(0, slash);
    Pair& pair = pairs[folder];
    if (pair.high == nullptr && pair.low == nullptr) order.push_back(folder);
    const File*& place = is_in_high_quality(file.path) ? pair.high : pair.low;
    if (place != nullptr) {
      throw core::Error(core::ErrorKind::data,
                        core::format("{} and {} are the same of a pair", shown(place->path), shown(file.path)),
                        "a folder has one video called hq and one called lq: remove one of them");
    }
    place = &file;
  }
  std::vector<File> files;
  for (const std::string& folder : order) {
    const Pair& pair = pairs[folder];
    if (pair.high == nullptr || pair.low == nullptr) {
      const File& alone = pair.high == nullptr ? *pair.low : *pair.high;
      throw core::Error(
          core::ErrorKind::data,
          core::format("{} has no partner called {}", shown(alone.path), pair.high == nullptr ? "hq" : "lq"),
          "add it, or remove both");
    }
    files.push_back(*pair.high);
    files.push_back(*pair.low);
  }
  return files;
}

std::shared_ptr<const Source> VideoFiles::source(const std::vector<std::string>& class_names, ScanNotes& notes) {
  const bool pairs = std::any_of(files_.begin(), files_.end(), [](const File& file) { return is_of_pair(file.path); });
  if (pairs) files_ = paired();
  FileList list(directory_);
  for (const File& file : files_) list.add(file.path, file.label, file.stamp);
  files_.clear();
  list.stage(options_.stage_dir, notes);
  return make_videos_of_files(std::move(list), class_names, options_, pairs ? 2 : 1);
}

std::vector<std::string> video_names_in(const std::string& directory) {
  std::vector<std::string> names;
  for (std::string& name : names_in(directory)) {
    if (name[0] != '.' && has_video_name(name)) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace stoker::data
