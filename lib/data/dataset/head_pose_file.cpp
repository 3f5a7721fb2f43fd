// SPDX-License-Identifier: Apache-2.0
#include "data/dataset/head_pose_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <vector>

#include "core/error.h"
#include "core/format.h"
#include "core/system/file.h"
#include "data/container/mat_file.h"
#include "data/dataset/file_source.h"
#include "data/layout.h"
#include "data/storage/tree_walk.h"

namespace stoker::data {
namespace {

constexpr double kDegreesPerRadian = 180 / 3.14159265358979323846;
constexpr double kHeadMillimetres = 200;

/// Numbers between blanks; false when something else stands there.
bool read_numbers(std::string_view text, std::vector<double>& numbers) {
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (true) {
    while (at != end && is_blank(*at)) ++at;
    if (at == end) return true;
    double number = 0;
    const auto [after, error] = std::from_chars(at, end, number);
    if (error != std::errc() || !std::isfinite(number) || (after != end && !is_blank(*after))) return false;
    numbers.push_back(number);
    at = after;
  }
}

/// Numbers as large as no picture end in a box that cannot be cut out: then there is none.
RegionOfInterest finite_or_empty(const RegionOfInterest& box) {
  for (const double value : {box.left, box.top, box.left + box.width, box.top + box.height}) {
    if (!std::isfinite(value)) return {};
  }
  return box;
}

/// The box of all landmarks that are known, widened.
RegionOfInterest landmark_box(const MatArray& landmarks, double margin) {
  double left = 0, top = 0, right = 0, bottom = 0;
  bool any = false;
  for (int64_t i = 0; i < landmarks.columns; ++i) {
    const double x = landmarks.values[static_cast<size_t>(2 * i)], y = landmarks.values[static_cast<size_t>(2 * i + 1)];
    if (!std::isfinite(x) || !std::isfinite(y) || (x == -1 && y == -1)) continue;
    left = any ? std::min(left, x) : x;
    right = any ? std::max(right, x) : x;
    top = any ? std::min(top, y) : y;
    bottom = any ? std::max(bottom, y) : y;
    any = true;
  }
  const double width = right - left, height = bottom - top;
  if (width <= 0 || height <= 0) return {};
  return finite_or_empty(
      {left - margin * width, top - margin * height, (1 + 2 * margin) * width, (1 + 2 * margin) * height});
}

}  // namespace

std::string parse_biwi_pose(std::string_view text, HeadPose& pose) {
  std::vector<double> numbers;
  if (!read_numbers(text, numbers)) return "holds something else than numbers";
  if (numbers.size() != 12) return "has not the 12 numbers of a rotation and a place";
  const auto transposed = [&](size_t row, size_t column) { return numbers[3 * column + row]; };
  for (size_t row = 0; row < 3; ++row) {
    double length = 0;
    for (size_t column = 0; column < 3; ++column) length += transposed(row, column) * transposed(row, column);
    if (std::abs(length - 1) > 0.01) return "does not begin with a rotation matrix";
  }
  const double roll = -std::atan2(transposed(1, 0), transposed(0, 0));
  const double yaw = -std::atan2(-transposed(2, 0), std::hypot(transposed(2, 1), transposed(2, 2)));
  const double pitch = std::atan2(transposed(2, 1), transposed(2, 2));
  const auto degrees = [](double radians) { return static_cast<float>(radians * kDegreesPerRadian); };
  pose = {{degrees(yaw), degrees(pitch), degrees(roll)}, {numbers[9], numbers[10], numbers[11]}, {}};
  return "";
}

std::string parse_biwi_camera(std::string_view text, ColourCamera& camera) {
  std::vector<std::vector<double>> lines;  // those that are not blank
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::vector<double> numbers;
    if (!read_numbers(text.substr(0, end), numbers)) return "holds something else than numbers";
    if (!numbers.empty()) lines.push_back(std::move(numbers));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  constexpr size_t kRotation = 4, kTranslation = 7;  // the lines where they begin
  if (lines.size() <= kTranslation) return "has not the lines of intrinsics, distortion, rotation and translation";
  for (const size_t line : {0, 1, 2, 4, 5, 6, 7}) {
    if (lines[line].size() != 3) return "has not 3 numbers in a line of a matrix";
  }
  if (lines[0][0] <= 0 || lines[1][1] <= 0) return "has a focal length that is not above 0";
  camera.focal_x = lines[0][0];
  camera.centre_x = lines[0][2];
  camera.focal_y = lines[1][1];
  camera.centre_y = lines[1][2];
  for (size_t i = 0; i < 9; ++i) camera.rotation[i] = lines[kRotation + i / 3][i % 3];
  for (size_t i = 0; i < 3; ++i) camera.translation[i] = lines[kTranslation][i];
  return "";
}

RegionOfInterest biwi_head_box(const std::array<double, 3>& place, const ColourCamera& camera, double margin) {
  std::array<double, 3> seen = camera.translation;  // millimetres before the colour camera
  for (size_t i = 0; i < 9; ++i) seen[i / 3] += camera.rotation[i] * place[i % 3];
  if (seen[2] <= 0) return {};
  const double millimetres = kHeadMillimetres * (1 + 2 * margin);
  const double width = camera.focal_x * millimetres / seen[2], height = camera.focal_y * millimetres / seen[2];
  return finite_or_empty({camera.focal_x * seen[0] / seen[2] + camera.centre_x - width / 2,
                          camera.focal_y * seen[1] / seen[2] + camera.centre_y - height / 2, width, height});
}

std::string read_300w_pose(const std::string& path, double margin, HeadPose& pose) {
  MatFile file;
  MatArray angles, landmarks;
  if (std::string problem = file.open(path); !problem.empty()) return problem;
  if (std::string problem = file.read_array("Pose_Para", angles); !problem.empty()) return problem;
  if (angles.values.size() < 3) return "Pose_Para has fewer than 3 numbers";
  for (size_t i = 0; i < 3; ++i) {
    if (!std::isfinite(angles.values[i])) return "Pose_Para is not finite";
  }
  const auto degrees = [&](size_t i) { return static_cast<float>(angles.values[i] * kDegreesPerRadian); };
  pose = {{degrees(1), degrees(0), degrees(2)}, {}, {}};
  const bool has_landmarks = file.read_array("pt2d", landmarks).empty() && landmarks.rows == 2;
  if (has_landmarks) pose.face = landmark_box(landmarks, margin);
  return "";
}

// Head pose data as it is published: images with an annotation file beside each.
//   300W-LP, AFLW2000   <data_dir>/<split>/**/<name>.jpg and <name>.mat
//   BIWI                <data_dir>/[<split>/]<subject>/frame_<number>_rgb.png and frame_<number>_pose.txt,
//                       rgb.cal with the camera that saw the subject
// BIWI's folders of subjects may lie directly in data_dir: then the training split is all subjects but those
// that val_subjects names, and "val" is those.

namespace {

constexpr char kHeldOutSubjects[] = "val";
constexpr char kCameraFile[] = "rgb.cal";
constexpr uint64_t kMaxAnnotationBytes = 16 << 20;

/// The colour cameras of BIWI's folders, each read once.
class Cameras {
 public:
  /// The camera of the folder at `directory`; the usual Kinect's where it has no file. Throws core::Error{data}.
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
