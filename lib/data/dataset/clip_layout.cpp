// SPDX-License-Identifier: Apache-2.0
// <data_dir>/<split>/<class>/<video>/<frame>: a folder of frames is a video, and the folder above it is its
// class.
#include <algorithm>

#include "core/error.h"
#include "core/format.h"
#include "data/dataset/class_folders.h"
#include "data/dataset/video_list.h"

namespace stoker::data {
namespace {

constexpr char kFrameName[] = "frame";  // how names of frames start, where --dataset does not force clips

std::string tree_of_clips(const std::string& split) {
  return core::format(
      "expected a folder of frames per video, in natural order of their names:\n"
      "  <data-dir>/{0}/real/video_0001/frame_0001.jpg\n"
      "  <data-dir>/{0}/real/video_0001/frame_0002.jpg\n"
      "  <data-dir>/{0}/fake/video_0002/frame_0001.jpg\n"
      "  <data-dir>/val/real/video_0003/frame_0001.jpg\n"
      "or each frame in high and in low quality, in two folders of every video:\n"
      "  <data-dir>/{0}/real/video_0001/hq/frame_0001.jpg\n"
      "  <data-dir>/{0}/real/video_0001/lq/frame_0001.jpg",
      core::printable(split));
}

class VideoScan : public ClassFolderScan {
 public:
  VideoScan(const std::string& folder, const config::DataOptions& options)
      : folder_(folder), options_(options), videos_(folder, options) {}

  void add_class(TreeWalker& walker, const std::string& class_name, int64_t label) override {
    const int64_t before = videos_.size();
    loose_images_.clear();
    VideoFrames video;
    const auto end_video = [&] {
      if (!video.is_empty()) videos_.add(std::move(video), label);
      video = {};
    };
    walker.visit_images(folder_, class_name, [&](const std::string& path, const FileStamp& stamp) {
      const size_t first = path.find('/', class_name.size() + 1), last = path.find_last_of('/');
      if (first == std::string::npos) return loose_images_.push_back(path);
      FramePlace place{path.substr(0, last), &VideoFrames::plain};
      if (first != last) place = place_of_frame(path);  // two folders below that of the class
      if (place.video.size() != first) refuse_depth(path);
      if (place.video != video.folder) end_video();
      video.folder = place.video;
      (video.*place.frames).push_back({path, stamp});
    });
    end_video();
    if (videos_.size() == before && !loose_images_.empty()) refuse_loose_images(class_name);
    all_loose_images_.insert(all_loose_images_.end(), loose_images_.begin(), loose_images_.end());
  }

  int64_t samples() const override { return videos_.size(); }

  std::shared_ptr<const Source> source(const std::vector<std::string>& class_names, ScanNotes& notes) override {
    for (const std::string& path : all_loose_images_) {
      notes.count("skipped images beside the folders of videos", folder_ + "/" + path);
    }
    return videos_.source(class_names, notes);
  }

 private:
  [[noreturn]] void refuse_depth(const std::string& path) const {
    throw core::Error(
        core::ErrorKind::data,
        core::format("{}/{} lies too deep for a frame of a video", core::printable(folder_), core::printable(path)),
        tree_of_clips(options_.train_split));
  }
  [[noreturn]] void refuse_loose_images(const std::string& class_name) const {
    throw core::Error(
        core::ErrorKind::data,
        core::format("class folder {}/{} holds {} images, but no folders of frames", core::printable(folder_),
                     core::printable(class_name), core::count_text(static_cast<int64_t>(loose_images_.size()))),
        tree_of_clips(options_.train_split) + "\nor learn from single images with --dataset folder");
  }

  const std::string folder_;
  const config::DataOptions options_;
  VideoList videos_;
  std::vector<std::string> loose_images_, all_loose_images_;  ///< of the class at hand, of those before
};

class ClipLayout : public ClassFolders {
 public:
  using ClassFolders::ClassFolders;

 protected:
  std::unique_ptr<ClassFolderScan> begin_scan(const std::string& folder) const override {
    return std::make_unique<VideoScan>(folder, options_);
  }
  std::string expected_tree() const override { return tree_of_clips(options_.train_split); }
  std::string samples_word() const override { return "videos"; }
};

}  // namespace

std::unique_ptr<Layout> make_clip_layout(const config::DataOptions& options, bool root_is_train) {
  return std::make_unique<ClipLayout>(options, root_is_train);
}

std::string expected_clips(const config::DataOptions& options) { return tree_of_clips(options.train_split); }

bool looks_like_clips(const config::DataOptions& options) {
  ScanNotes ignored;
  TreeWalker walker(options.follow_symlinks, ignored);
  const std::string split = options.data_dir + "/" + options.train_split;
  const std::string folder = is_directory(split) ? split : options.data_dir;
  const std::vector<std::string> classes = walker.folders_in(folder);
  if (classes.empty() || !image_names_in(folder + "/" + classes[0]).empty()) return false;
  const std::vector<std::string> videos = walker.folders_in(folder + "/" + classes[0]);
  if (videos.empty()) return false;
  const std::string video = folder + "/" + classes[0] + "/" + videos[0];
  const std::vector<std::string> frames = image_names_in(video);
  if (frames.empty() && is_directory(video + "/hq") && is_directory(video + "/lq")) return true;
  return !frames.empty() && std::all_of(frames.begin(), frames.end(), [](const std::string& name) {
    return name.compare(0, sizeof(kFrameName) - 1, kFrameName) == 0;
  });
}

}  // namespace stoker::data
