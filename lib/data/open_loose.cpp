// SPDX-License-Identifier: Apache-2.0
// Images and videos without labels, for prediction.
#include <glob.h>

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

std::shared_ptr<const Source> open_loose_images(const std::string& path, bool follow_symlinks,
                                                const config::SoundOptions& sound) {
  if (!is_directory(path)) {
    FileList files("");
    files.add(path, kNoLabel, stamp_of(path));
    if (files.stamp(0).size < 0) {
      const char* const cause = core::file_exists(path) ? "is not a regular file" : "does not exist";
      throw core::Error(core::ErrorKind::no_input, core::format("{} {}", core::printable(path), cause),
                        "give an image or a folder of images");
    }
    return make_file_source(std::move(files), {}, sound);
  }
  ScanNotes ignored;
  FileList files(path);
  TreeWalker walker(follow_symlinks, ignored);
  walker.claim_with_ancestors(path);
  const auto add = [&](const std::string& relative, const FileStamp& stamp) { files.add(relative, kNoLabel, stamp); };
  walker.visit_files(path, "", add, add);
  if (files.size() == 0) {
    throw core::Error(core::ErrorKind::no_input, core::format("{} has no images", core::printable(path)), kImagesRead);
  }
  return make_file_source(std::move(files), {}, sound);
}

namespace {

/// Files and folders that are there as they are written, else what matches as a pattern.
std::vector<std::string> matching(const std::string& path) {
  if (core::file_exists(path) || path.find_first_of("*?[") == std::string::npos) return {path};
  glob_t found{};
  const int status = ::glob(path.c_str(), 0, nullptr, &found);
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + (status == 0 ? found.gl_pathc : 0));
  ::globfree(&found);
  if (!paths.empty()) return paths;
  throw core::Error(core::ErrorKind::no_input, core::printable(path) + " matches no file", "give images or folders");
}

}  // namespace

std::shared_ptr<const Source> open_loose_images(const std::vector<std::string>& paths, bool follow_symlinks,
                                                const config::SoundOptions& sound) {
  FileList files("");
  ScanNotes ignored;
  std::string first_missing;
  int64_t missing = 0;  // of several: each is reported where its result would stand
  for (const std::string& given : paths) {
    for (const std::string& path : matching(given)) {
      if (!is_directory(path)) {
        const FileStamp stamp = stamp_of(path);
        if (stamp.size < 0 && missing++ == 0) first_missing = path;
        files.add(path, kNoLabel, stamp);
        continue;
      }
      const int64_t before = files.size();
      TreeWalker walker(follow_symlinks, ignored);
      walker.claim_with_ancestors(path);
      const std::string prefix = path.back() == '/' ? path : path + "/";
      const auto add = [&](const std::string& relative, const FileStamp& stamp) {
        files.add(prefix + relative, kNoLabel, stamp);
      };
      walker.visit_files(path, "", add, add);
      if (files.size() > before) continue;
      files.add(path, kNoLabel, stamp_of(path));
      if (missing++ == 0) first_missing = path;
    }
  }
  if (missing == files.size()) {
    const char* const cause = is_directory(first_missing)        ? "has no images"
                              : core::file_exists(first_missing) ? "is not a regular file"
                                                                 : "does not exist";
    throw core::Error(core::ErrorKind::no_input, core::format("{} {}", core::printable(first_missing), cause),
                      "give images or folders of images: JPEG, PNG, BMP, WebP, TIFF, GIF, PNM or JPEG 2000");
  }
  return make_file_source(std::move(files), {}, sound);
}

std::shared_ptr<const Source> open_loose_videos(const std::string& path, const config::DataOptions& options) {
  if (!is_directory(path)) {
    throw core::Error(core::ErrorKind::no_input, core::printable(path) + " is not a folder",
                      "the network takes clips: give a folder of frames, or a folder of such folders");
  }
  ScanNotes ignored;
  TreeWalker walker(options.follow_symlinks, ignored);
  walker.claim_with_ancestors(path);
  std::map<std::string, VideoFrames> videos;  // by their folder
  walker.visit_images(path, "", [&](const std::string& relative, const FileStamp& stamp) {
    const FramePlace place = place_of_frame(relative);
    VideoFrames& video = videos[place.video];
    video.folder = place.video;
    (video.*place.frames).push_back({relative, stamp});
  });
  if (videos.empty()) {
    throw core::Error(core::ErrorKind::no_input, core::printable(path) + " has no frames",
                      "the network takes clips: give a folder of frames (JPEG, PNG, BMP, WebP, TIFF, GIF, PNM or JPEG "
                      "2000), or a folder of "
                      "such folders");
  }
  VideoList list(path, options);
  for (auto& entry : videos) list.add(std::move(entry.second), kNoLabel);
  return list.source({}, ignored);
}

}  // namespace stoker::data
