// SPDX-License-Identifier: Apache-2.0
// Images and videos without labels, for prediction.
#include <map>

#include "core/error.h"
#include "core/format.h"
#include "core/system/file.h"
#include "data/dataset/file_source.h"
#include "data/dataset/video_list.h"
#include "data/open_datasets.h"
#include "data/storage/tree_walk.h"

namespace stoker::data {
namespace {

constexpr int64_t kNoLabel = -1;

}  // namespace

std::shared_ptr<const Source> open_loose_images(const std::string& path, bool follow_symlinks) {
  if (!is_directory(path)) {
    FileList files("");
    files.add(path, kNoLabel, stamp_of(path));
    if (files.stamp(0).size < 0) {
      const char* const cause = core::file_exists(path) ? "is not a regular file" : "does not exist";
      throw core::Error(core::ErrorKind::no_input, core::format("{} {}", core::printable(path), cause),
                        "give an image or a folder of images");
    }
    return make_file_source(std::move(files), {});
  }
  ScanNotes ignored;
  FileList files(path);
  TreeWalker walker(follow_symlinks, ignored);
  walker.claim_with_ancestors(path);
  walker.visit_images(
      path, "", [&](const std::string& relative, const FileStamp& stamp) { files.add(relative, kNoLabel, stamp); });
  if (files.size() == 0) {
    throw core::Error(core::ErrorKind::no_input, core::format("{} has no images", core::printable(path)),
                      "images are JPEG, PNG, BMP or WebP files");
  }
  return make_file_source(std::move(files), {});
}

std::shared_ptr<const Source> open_loose_videos(const std::string& path, const config::DataOptions& options) {
  if (!is_directory(path)) {
    throw core::Error(core::ErrorKind::no_input, core::printable(path) + " is not a folder",
                      "the network takes clips: give a folder of frames, or a folder of such folders");
  }
  ScanNotes ignored;
  TreeWalker walker(options.follow_symlinks, ignored);
  walker.claim_with_ancestors(path);
  std::map<std::string, std::vector<VideoFrame>> videos;  // by their folder
  walker.visit_images(path, "", [&](const std::string& relative, const FileStamp& stamp) {
    const size_t slash = relative.find_last_of('/');
    videos[slash == std::string::npos ? "" : relative.substr(0, slash)].push_back({relative, stamp});
  });
  if (videos.empty()) {
    throw core::Error(core::ErrorKind::no_input, core::printable(path) + " has no frames",
                      "the network takes clips: give a folder of frames (JPEG, PNG, BMP or WebP), or a folder of "
                      "such folders");
  }
  VideoList list(path, options);
  for (auto& entry : videos) list.add(std::move(entry.second), kNoLabel);
  return list.source({}, ignored);
}

}  // namespace stoker::data
