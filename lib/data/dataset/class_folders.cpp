// SPDX-License-Identifier: Apache-2.0
#include "data/dataset/class_folders.h"

#include <algorithm>
#include <set>

#include "core/error.h"
#include "core/format.h"
#include "data/dataset/file_source.h"
#include "data/dataset/split_list.h"
#include "data/dataset/video_files.h"
#include "data/dataset/video_list.h"

namespace stoker::data {
namespace {

std::vector<std::string> only_in_first(const std::vector<std::string>& first, const std::vector<std::string>& second) {
  std::vector<std::string> names;
  std::set_difference(first.begin(), first.end(), second.begin(), second.end(), std::back_inserter(names));
  for (std::string& name : names) {
    name = core::printable(name);
    if (name.find(' ') != std::string::npos) name = "'" + name + "'";
  }
  return names;
}

/// A class of which this split has no folder is not an error; a folder that is not a class is.
void check_known_classes(const std::string& folder, const std::vector<std::string>& found,
                         const std::vector<std::string>& expected) {
  std::vector<std::string> sorted = expected;
  std::sort(sorted.begin(), sorted.end());
  const std::vector<std::string> unknown = only_in_first(found, sorted), missing = only_in_first(sorted, found);
  if (unknown.empty()) return;
  std::string text =
      core::format("the class folders of {} differ from the classes that are learned:", core::printable(folder));
  if (!unknown.empty()) text += core::format(" only here: {};", core::list_text(unknown));
  if (!missing.empty()) text += core::format(" missing here: {};", core::list_text(missing));
  text.back() = '.';
  throw core::Error(
      core::ErrorKind::data, text,
      "name the folders as the classes; a class without training images must have no folder in other splits");
}

/// Images that lie together, and no list with their classes.
void refuse_without_classes(const std::string& folder, const std::string& split) {
  std::string place = folder;
  std::vector<std::string> images = image_names_in(folder);
  if (images.empty() && is_directory(folder + "/images")) images = image_names_in(place = folder + "/images");
  if (images.empty()) return;
  throw core::Error(
      core::ErrorKind::data,
      core::format("{} holds {} and no folder per class", core::printable(place),
                   core::counted(static_cast<int64_t>(images.size()), "image")),
      core::format(
          "move them into {0}/<class>/, or list them in {0}.csv with the columns path,label beside the folder; for "
          "ImageNet put ILSVRC2012_validation_ground_truth.txt and meta.mat of its devkit beside it",
          core::printable(split)));
}

[[noreturn]] void on_shared_folder(const std::string& folder) {
  throw core::Error(core::ErrorKind::data,
                    core::format("class folder {} is, by a link, the same folder as another class or one above it",
                                 core::printable(folder)),
                    "an image can have one class only: remove the link");
}

}  // namespace

std::string folder_of_classes(const std::string& folder) {
  const std::string name = folder.substr(folder.rfind('/') + 1);
  if (!is_directory(folder + "/" + name)) return folder;
  for (const std::string& other : names_in(folder)) {
    if (other[0] != '.' && other != name && !is_system_folder(other)) return folder;
  }
  return folder + "/" + name;
}

bool ClassFolders::has_split(const std::string& split) const {
  return (root_is_train_ && split == options_.train_split) || is_directory(folder_of(split));
}

std::string ClassFolders::folder_of(const std::string& split) const {
  if (root_is_train_ && split == options_.train_split) return options_.data_dir;
  return folder_of_classes(options_.data_dir + "/" + split);
}

std::vector<std::string> ClassFolders::class_names(const std::string& train_split) const {
  const std::string folder = folder_of(train_split);
  if (!is_directory(folder)) {
    throw core::Error(core::ErrorKind::no_input, core::printable(folder) + " is not a folder", expected_tree());
  }
  ScanNotes ignored;
  std::vector<std::string> names = TreeWalker(options_.follow_symlinks, ignored).folders_in(folder);
  if (names.size() >= 2) return names;
  throw core::Error(core::ErrorKind::data,
                    core::format("{} holds {} class folder{}; at least 2 classes are needed", core::printable(folder),
                                 names.size(), names.size() == 1 ? " (" + core::printable(names[0]) + ")" : "s"),
                    data::found_text(folder) + expected_tree());
}

std::shared_ptr<const Source> ClassFolders::open(const std::string& split, const std::vector<std::string>& class_names,
                                                 bool is_train, std::vector<std::string>& notes) const {
  const std::string folder = folder_of(split);
  ScanNotes scan_notes;
  TreeWalker walker(options_.follow_symlinks, scan_notes);
  const std::vector<std::string> found = walker.folders_in(folder);
  const auto is_there = [&](const std::string& name) { return std::count(found.begin(), found.end(), name) > 0; };
  if (!is_train && std::none_of(class_names.begin(), class_names.end(), is_there)) {
    if (auto source = open_split_list(options_, split, class_names, notes)) return source;
    refuse_without_classes(folder, split);
  }
  check_known_classes(folder, found, class_names);
  walker.claim_with_ancestors(folder);
  for (const std::string& name : class_names) {
    if (is_there(name) && !walker.claim(folder + "/" + name)) on_shared_folder(folder + "/" + name);
  }
  const std::unique_ptr<ClassFolderScan> scan = begin_scan(folder);
  for (size_t label = 0; label < class_names.size(); ++label) {
    const int64_t before = scan->samples();
    if (is_there(class_names[label])) scan->add_class(walker, class_names[label], static_cast<int64_t>(label));
    if (scan->samples() == before) on_empty_class(folder + "/" + class_names[label], is_train, before, scan_notes);
  }
  if (is_train) {
    if (const std::string levels = scan->levels(class_names); !levels.empty()) scan_notes.add_line(levels);
  }
  auto source = scan->source(class_names, scan_notes);
  for (const std::string& line : scan_notes.lines()) notes.push_back(split + ": " + line);
  return source;
}

void ClassFolders::on_empty_class(const std::string& folder, bool is_train, int64_t samples_before,
                                  ScanNotes& notes) const {
  if (!is_train) return notes.count("class folders without " + samples_noun(), folder);
  std::string left_out;
  for (const std::string& line : notes.lines()) left_out += "\n" + line;
  throw core::Error(
      core::ErrorKind::data,
      core::format("class folder {} has 0 {} ({} found in the classes before it)", core::printable(folder),
                   samples_noun(), core::count_text(samples_before)),
      data::found_text(folder, /*is_class=*/true) +
          "add images (JPEG, PNG, BMP, WebP, TIFF, GIF, PNM or JPEG 2000), sounds or videos, or remove the folder" +
          left_out);
}

// <data_dir>/<split>/<class>/**/<image>: the folder's name is the class.

namespace {

class ImageScan : public ClassFolderScan {
 public:
  ImageScan(const std::string& folder, const config::DataOptions& options)
      : folder_(folder), options_(options), images_(folder), sounds_(folder) {}

  void add_class(TreeWalker& walker, const std::string& class_name, int64_t label) override {
    std::set<std::string> below;  // folders in that of the class
    const auto add = [&](FileList& files, const std::string& path, const FileStamp& stamp) {
      files.add(path, label, stamp);
      const size_t begin = class_name.size() + 1, end = path.find('/', begin);
      has_direct_ = has_direct_ || end == std::string::npos;
      if (!has_direct_ && below.size() <= kMostBelow) below.insert(path.substr(begin, end - begin));
    };
    walker.visit_files(
        folder_, class_name, [&](const std::string& path, const FileStamp& stamp) { add(images_, path, stamp); },
        [&](const std::string& path, const FileStamp& stamp) { add(sounds_, path, stamp); }, /*videos=*/nullptr);
    if (below.empty() || below.size() > kMostBelow) has_direct_ = true;
    below_.push_back(std::move(below));
  }
  std::string levels(const std::vector<std::string>& class_names) const override {
    if (has_direct_ || below_.size() < 2) return "";
    const auto has_several = [](const std::set<std::string>& names) { return names.size() > 1; };
    const auto several = std::find_if(below_.begin(), below_.end(), has_several);
    if (2 * std::count_if(below_.begin(), below_.end(), has_several) < static_cast<std::ptrdiff_t>(below_.size())) {
      return "";
    }
    const std::set<std::string>& first = *several;
    const std::string classes = core::list_text(quoted(class_names), 3), inner = core::list_text(quoted(first), 3);
    if (std::all_of(below_.begin(), below_.end(), [&](const auto& names) { return names == first; })) {
      return core::format(
          "the classes are {}, and the folder of each holds {}: where these are the classes: --data-dir {} "
          "--val-fraction 0.1",
          classes, inner, core::shell_word(folder_ + "/" + class_names.front()));
    }
    return core::format(
        "the classes are {}; their images lie in folders below ({} in {}), which are no classes: where they "
        "are, copy them together (mkdir flat; cp -rl {}/*/* flat) for --data-dir flat; where they are videos, "
        "--dataset clips",
        classes, inner, quoted(class_names)[static_cast<size_t>(several - below_.begin())], core::shell_word(folder_));
  }
  int64_t samples() const override { return images_.size() + sounds_.size(); }
  std::shared_ptr<const Source> source(const std::vector<std::string>& class_names, ScanNotes& notes) override {
    const bool are_sounds = sounds_.size() > images_.size();
    FileList &files = are_sounds ? sounds_ : images_, &others = are_sounds ? images_ : sounds_;
    const char* const left_out = are_sounds ? "skipped images beside sounds" : "skipped files that are not images";
    for (int64_t i = 0; i < others.size(); ++i) notes.count(left_out, others.path(i));
    files.stage(options_.stage_dir, notes);
    return make_file_source(std::move(files), class_names, options_);
  }

 private:
  static constexpr size_t kMostBelow = 1000;
  template <typename Names>
  static std::vector<std::string> quoted(const Names& names) {
    std::vector<std::string> texts;
    for (const std::string& name : names) texts.push_back("'" + core::printable(name) + "'");
    return texts;
  }

  const std::string folder_;
  const config::DataOptions options_;
  FileList images_, sounds_;
  bool has_direct_ = false;  ///< images in class folders themselves, or folders there that are no second level
  std::vector<std::set<std::string>> below_;
};

class FolderLayout : public ClassFolders {
 public:
  using ClassFolders::ClassFolders;

 protected:
  std::unique_ptr<ClassFolderScan> begin_scan(const std::string& folder) const override {
    return std::make_unique<ImageScan>(folder, options_);
  }
  std::string expected_tree() const override {
    return "expected <data-dir>/<split>/<class>/*.jpg: one folder per class";
  }
  std::string samples_noun() const override { return "images"; }
};

}  // namespace

std::unique_ptr<Layout> make_folder_layout(const config::DataOptions& options, bool root_is_train) {
  return std::make_unique<FolderLayout>(options, root_is_train);
}

// <data_dir>/<split>/<class>/<video>/<frame>: a folder of frames is a video, and the folder above it is its
// class.

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
      "  <data-dir>/{0}/real/video_0001/lq/frame_0001.jpg\n"
      "or video files: <data-dir>/{0}/real/video_0001.mp4, in pairs video_0001/hq.mp4 and video_0001/lq.mp4",
      core::printable(split));
}

class VideoScan : public ClassFolderScan {
 public:
  VideoScan(const std::string& folder, const config::DataOptions& options)
      : folder_(folder), options_(options), videos_(folder, options), files_(folder, options) {}

  void add_class(TreeWalker& walker, const std::string& class_name, int64_t label) override {
    const int64_t before = samples();
    loose_images_.clear();
    VideoFrames video;
    const auto end_video = [&] {
      if (!video.is_empty()) videos_.add(std::move(video), label);
      video = {};
    };
    const auto add_frame = [&](const std::string& path, const FileStamp& stamp) {
      const size_t first = path.find('/', class_name.size() + 1), last = path.find_last_of('/');
      if (first == std::string::npos) return loose_images_.push_back(path);
      FramePlace place{path.substr(0, last), &VideoFrames::plain};
      if (first != last) place = place_of_frame(path);  // two folders below that of the class
      if (place.video.size() != first) refuse_depth(path);
      if (place.video != video.folder) end_video();
      video.folder = place.video;
      (video.*place.frames).push_back({path, stamp});
    };
    const auto add_file = [&](const std::string& path, const FileStamp& stamp) { files_.add(path, label, stamp); };
    walker.visit_files(folder_, class_name, add_frame, nullptr, add_file);
    end_video();
    if (samples() == before && !loose_images_.empty()) refuse_loose_images(class_name);
    all_loose_images_.insert(all_loose_images_.end(), loose_images_.begin(), loose_images_.end());
  }

  int64_t samples() const override { return videos_.size() + files_.size(); }

  std::shared_ptr<const Source> source(const std::vector<std::string>& class_names, ScanNotes& notes) override {
    if (videos_.size() > 0 && files_.size() > 0) {
      throw core::Error(core::ErrorKind::data,
                        core::format("{} holds both video files and folders of frames", core::printable(folder_)),
                        "keep one of both: they would be different videos of one data set, or the same ones twice");
    }
    for (const std::string& path : all_loose_images_) {
      notes.count("skipped images beside the folders of videos", folder_ + "/" + path);
    }
    return files_.size() > 0 ? files_.source(class_names, notes) : videos_.source(class_names, notes);
  }

 private:
  [[noreturn]] void refuse_depth(const std::string& path) const {
    throw core::Error(
        core::ErrorKind::data,
        core::format("{}/{} lies too deep for a frame of a video", core::printable(folder_), core::printable(path)),
        tree_of_clips(options_.train_split));
  }
  [[noreturn]] void refuse_loose_images(const std::string& class_name) const {
    throw core::Error(core::ErrorKind::data,
                      core::format("class folder {}/{} holds {} images, but neither videos nor folders of frames",
                                   core::printable(folder_), core::printable(class_name),
                                   core::count_text(static_cast<int64_t>(loose_images_.size()))),
                      tree_of_clips(options_.train_split) + "\nor learn from single images with --dataset folder");
  }

  const std::string folder_;
  const config::DataOptions options_;
  VideoList videos_;  ///< folders of frames
  VideoFiles files_;
  std::vector<std::string> loose_images_, all_loose_images_;  ///< images of the class at hand, of those before
};

class ClipLayout : public ClassFolders {
 public:
  using ClassFolders::ClassFolders;

 protected:
  std::unique_ptr<ClassFolderScan> begin_scan(const std::string& folder) const override {
    return std::make_unique<VideoScan>(folder, options_);
  }
  std::string expected_tree() const override { return tree_of_clips(options_.train_split); }
  std::string samples_noun() const override { return "videos"; }
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
  const std::string folder = is_directory(split) ? folder_of_classes(split) : options.data_dir;
  const std::vector<std::string> classes = walker.folders_in(folder);
  if (classes.empty()) return false;
  const size_t images = image_names_in(folder + "/" + classes[0]).size();
  if (video_names_in(folder + "/" + classes[0]).size() > images) return true;
  if (images > 0) return false;
  const std::vector<std::string> videos = walker.folders_in(folder + "/" + classes[0]);
  if (videos.empty()) return false;
  const std::string video = folder + "/" + classes[0] + "/" + videos[0];
  const std::vector<std::string> frames = image_names_in(video);
  if (video_names_in(video).size() > frames.size()) return true;
  if (frames.empty() && is_directory(video + "/hq") && is_directory(video + "/lq")) return true;
  return !frames.empty() && std::all_of(frames.begin(), frames.end(), [](const std::string& name) {
    return name.compare(0, sizeof(kFrameName) - 1, kFrameName) == 0;
  });
}

}  // namespace stoker::data
