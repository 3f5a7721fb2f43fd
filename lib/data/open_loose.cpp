// SPDX-License-Identifier: Apache-2.0
// Images and videos without labels, for prediction.
#include <glob.h>

#include <map>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/file.h"
#include "data/dataset/file_source.h"
#include "data/dataset/video_files.h"
#include "data/dataset/video_list.h"
#include "data/open_datasets.h"
#include "data/storage/tree_walk.h"

namespace stoker::data {
namespace {

constexpr int64_t kNoLabel = -1;

/// Adds the images and sounds of a folder, or its videos where these are more. `prefix` comes before their names.
void add_folder(const std::string& path, const std::string& prefix, bool follow_symlinks, FileList& files) {
  ScanNotes notes;
  TreeWalker walker(follow_symlinks, notes);
  walker.claim_with_ancestors(path);
  std::vector<std::pair<std::string, FileStamp>> others, videos;
  const auto add_to = [](auto& list) {
    return [&list](const std::string& relative, const FileStamp& stamp) { list.emplace_back(relative, stamp); };
  };
  walker.visit_files(path, "", add_to(others), add_to(others), add_to(videos));
  for (const auto& [name, stamp] : videos.size() > others.size() ? videos : others) {
    files.add(prefix + name, kNoLabel, stamp);
  }
  for (const std::string& line : notes.lines()) core::log_info("note      {}", line);
}

}  // namespace

std::shared_ptr<const Source> open_loose_images(const std::string& path, bool follow_symlinks,
                                                const config::DataOptions& options) {
  if (!is_directory(path)) {
    FileList files("");
    files.add(path, kNoLabel, stamp_of(path));
    if (files.stamp(0).size < 0) {
      const char* const cause = core::file_exists(path) ? "is not a regular file" : "does not exist";
      throw core::Error(core::ErrorKind::no_input, core::format("{} {}", core::printable(path), cause),
                        "give an image or a folder of images");
    }
    return make_file_source(std::move(files), {}, options);
  }
  FileList files(path);
  add_folder(path, "", follow_symlinks, files);
  if (files.size() == 0) {
    throw core::Error(core::ErrorKind::no_input, core::format("{} has no images", core::printable(path)), kImagesRead);
  }
  return make_file_source(std::move(files), {}, options);
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
                                                const config::DataOptions& options) {
  FileList files("");
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
      add_folder(path, path.back() == '/' ? path : path + "/", follow_symlinks, files);
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
  return make_file_source(std::move(files), {}, options);
}

std::shared_ptr<const Source> open_loose_videos(const std::string& path, const config::DataOptions& options) {
  if (!is_directory(path) && has_video_name(path)) return open_loose_images(path, options.follow_symlinks, options);
  if (!is_directory(path)) {
    throw core::Error(core::ErrorKind::no_input, core::printable(path) + " is neither a folder nor a video",
                      "the network takes clips: give videos (.mp4, .avi, .mkv, .webm), or folders of frames");
  }
  ScanNotes ignored;
  TreeWalker walker(options.follow_symlinks, ignored);
  walker.claim_with_ancestors(path);
  std::map<std::string, VideoFrames> videos;  // by their folder
  VideoFiles files(path, options);
  walker.visit_files(
      path, "",
      [&](const std::string& relative, const FileStamp& stamp) {
        const FramePlace place = place_of_frame(relative);
        VideoFrames& video = videos[place.video];
        video.folder = place.video;
        (video.*place.frames).push_back({relative, stamp});
      },
      nullptr, [&](const std::string& relative, const FileStamp& stamp) { files.add(relative, kNoLabel, stamp); });
  if (files.size() > static_cast<int64_t>(videos.size())) return files.source({}, ignored);
  if (videos.empty()) {
    throw core::Error(
        core::ErrorKind::no_input, core::printable(path) + " has no videos and no frames",
        "the network takes clips: give videos (.mp4, .avi, .mkv, .webm), or folders of frames (JPEG, PNG, "
        "BMP, WebP, TIFF, GIF, PNM or JPEG 2000)");
  }
  VideoList list(path, options);
  for (auto& entry : videos) list.add(std::move(entry.second), kNoLabel);
  return list.source({}, ignored);
}

}  // namespace stoker::data
