// SPDX-License-Identifier: Apache-2.0
// Head pose data as it is published: images with an annotation file beside each.
//   300W-LP, AFLW2000   <data_dir>/<split>/**/<name>.jpg and <name>.mat
//   BIWI                <data_dir>/[<split>/]<subject>/frame_<number>_rgb.png and frame_<number>_pose.txt,
//                       rgb.cal with the camera that saw the subject
// BIWI's folders of subjects may lie directly in data_dir: then the training split is all subjects but those
// that val_subjects names, and "val" is those.
#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/format.h"
#include "core/system/file.h"
#include "data/dataset/file_source.h"
#include "data/dataset/head_pose_file.h"
#include "data/layout.h"
#include "data/storage/tree_walk.h"

namespace stoker::data {
namespace {

constexpr char kHeldOutSubjects[] = "val";
constexpr char kCameraFile[] = "rgb.cal";
constexpr uint64_t kMaxAnnotationBytes = 16 << 20;

/// The colour cameras of BIWI's folders, each read once.
class Cameras {
 public:
  /// Of the folder at `directory`; the usual Kinect's where it has no file. Throws core::Error{data}.
  const ColourCamera& of(const std::string& directory) {
    const auto [at, is_new] = cameras_.try_emplace(directory);
    if (!is_new) return at->second;
    const std::string path = directory + "/" + kCameraFile;
    if (stamp_of(path).size < 0) {
      ++without_file_;
      return at->second;
    }
    const std::string problem = parse_biwi_camera(core::read_file(path, kMaxAnnotationBytes), at->second);
    if (problem.empty()) return at->second;
    throw core::Error(core::ErrorKind::data, core::printable(path) + ": " + problem,
                      "repair the file, or remove it: the usual camera of a Kinect is then used");
  }
  int64_t count() const { return static_cast<int64_t>(cameras_.size()); }
  int64_t without_file() const { return without_file_; }

 private:
  std::map<std::string, ColourCamera> cameras_;
  int64_t without_file_ = 0;
};

class PoseLayout : public Layout {
 public:
  explicit PoseLayout(const config::DataOptions& options)
      : options_(options),
        is_biwi_(options.dataset == config::DatasetType::biwi),
        image_end_(is_biwi_ ? "_rgb.png" : ".jpg"),
        pose_end_(is_biwi_ ? "_pose.txt" : ".mat") {
    has_folders_ = is_directory(options_.data_dir + "/" + options_.train_split);
  }

  bool has_split(const std::string& split) const override {
    if (by_subject()) return split == options_.train_split || split == kHeldOutSubjects;
    return is_directory(options_.data_dir + "/" + split);
  }

  std::vector<std::string> class_names(const std::string&) const override { return {"yaw", "pitch", "roll"}; }

  std::shared_ptr<const Source> open(const std::string& split, const std::vector<std::string>& names, bool,
                                     std::vector<std::string>& notes) const override {
    const std::string folder = by_subject() ? options_.data_dir : options_.data_dir + "/" + split;
    FileList files(folder, static_cast<int64_t>(names.size()));
    ScanNotes ignored, left_out;
    Cameras cameras;
    TreeWalker walker(options_.follow_symlinks, ignored);
    walker.claim_with_ancestors(folder);
    const auto add = [&](const std::string& path, const FileStamp& stamp) {
      add_image(path, stamp, files, cameras, left_out);
    };
    if (by_subject()) {
      for (const std::string& subject : subjects_of(split)) walker.visit_images(folder, subject, add);
    } else {
      walker.visit_images(folder, "", add);
    }
    if (files.size() == 0) {
      throw core::Error(
          core::ErrorKind::data,
          core::format("{} holds no image *{} with *{} beside it", core::printable(folder), image_end_, pose_end_),
          is_biwi_ ? "expected <data-dir>/<subject>/frame_00003_rgb.png and frame_00003_pose.txt"
                   : "expected <data-dir>/<split>/<name>.jpg and <name>.mat, as in 300W_LP/AFW or AFLW2000");
    }
    files.stage(options_.stage_dir, left_out);
    for (const std::string& line : left_out.lines()) notes.push_back(split + ": " + line);
    if (const int64_t guessed = cameras.without_file(); guessed > 0) {
      notes.push_back(core::format("{}: {} of {} folders have no {}: faces are found with the usual Kinect's", split,
                                   guessed, cameras.count(), kCameraFile));
    }
    if (by_subject()) notes.push_back(split + ": subjects " + core::list_text(subjects_of(split), 30));
    return make_target_source(std::move(files), names);
  }

 private:
  bool by_subject() const { return is_biwi_ && !has_folders_; }

  void add_image(const std::string& path, const FileStamp& stamp, FileList& files, Cameras& cameras,
                 ScanNotes& left_out) const {
    if (!core::ends_with(path, image_end_)) return;
    const std::string annotation = path.substr(0, path.size() - image_end_.size()) + pose_end_;
    const std::string whole = files.absolute(annotation);
    if (stamp_of(whole).size < 0) return left_out.count("images without " + pose_end_ + " beside them", path);
    HeadPose pose;
    const std::string problem = is_biwi_ ? parse_biwi_pose(core::read_file(whole, kMaxAnnotationBytes), pose)
                                         : read_300w_pose(whole, options_.face_margin, pose);
    if (!problem.empty()) {
      throw core::Error(core::ErrorKind::data, core::printable(whole) + ": " + problem,
                        "repair the file, or remove it: its image is then left out");
    }
    if (is_biwi_) {
      pose.face = biwi_head_box(pose.place, cameras.of(whole.substr(0, whole.rfind('/'))), options_.face_margin);
      if (pose.face.width <= 0) left_out.count("heads that are not before the camera: their images stay whole", path);
    }
    files.add(path, {pose.angles.begin(), pose.angles.end()}, stamp, pose.face);
  }

  /// Every third one is held out unless val_subjects names some.
  std::vector<std::string> subjects_of(const std::string& split) const {
    ScanNotes ignored;
    const std::vector<std::string> all = TreeWalker(options_.follow_symlinks, ignored).folders_in(options_.data_dir);
    std::vector<std::string> named = subject_list(), kept, held;
    for (const std::string& name : named) {
      if (std::find(all.begin(), all.end(), name) != all.end()) continue;
      throw core::Error(core::ErrorKind::data,
                        core::format("{} has no folder of the subject '{}'", core::printable(options_.data_dir),
                                     core::printable(name)),
                        "val-subjects are names of folders, such as 01,12,24");
    }
    for (size_t i = 0; i < all.size(); ++i) {
      const bool is_held = named.empty() ? i % 3 == 2 : std::find(named.begin(), named.end(), all[i]) != named.end();
      (is_held ? held : kept).push_back(all[i]);
    }
    return split == options_.train_split ? kept : held;
  }

  std::vector<std::string> subject_list() const {
    std::vector<std::string> names;
    std::string name;
    for (const char c : options_.val_subjects + ",") {
      if (c != ',') {
        name += c;
      } else if (!name.empty()) {
        names.push_back(std::move(name));
        name.clear();
      }
    }
    return names;
  }

  const config::DataOptions options_;
  const bool is_biwi_;
  const std::string image_end_, pose_end_;
  bool has_folders_ = false;
};

}  // namespace

std::unique_ptr<Layout> make_pose_layout(const config::DataOptions& options) {
  return std::make_unique<PoseLayout>(options);
}

}  // namespace stoker::data
