// SPDX-License-Identifier: Apache-2.0
#include "data/storage/image_finder.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/format.h"
#include "core/system/stop_signal.h"

namespace stoker::data {
namespace {

constexpr std::array kSuffixes = {"",     ".jpg",  ".png", ".jpeg", ".JPG",  ".JPEG", ".PNG", ".tif", ".tiff",
                                  ".bmp", ".webp", ".ppm", ".TIF",  ".TIFF", ".jpe",  ".gif", ".jp2", ".pgm"};
constexpr std::array kSplitWords = {"train", "val", "test", "dev"};
constexpr size_t kMostDropped = 16;  // folders in front of a name
constexpr int kMaxMisses = 20;  // lists of a million files that are elsewhere must not look for each a hundred times

size_t slashes_in(const std::string& text) { return static_cast<size_t>(std::count(text.begin(), text.end(), '/')); }

/// "images_part_" of "images_part_2": folders that hold parts of one data set.
std::string family_of(const std::string& folder) { return folder.substr(0, folder.find_last_not_of("0123456789") + 1); }

bool begins_with(const std::string& text, const std::string& begin) {
  return text.compare(0, begin.size(), begin) == 0;
}

/// Whether a folder is named after another split than `split`.
bool is_of_another_split(const std::string& folder, const std::string& split) {
  const std::string name = core::lower_case(folder);
  return std::any_of(kSplitWords.begin(), kSplitWords.end(), [&](const char* word) {
    return begins_with(name, word) && !begins_with(core::lower_case(split), word);
  });
}

bool is_number_alone(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

bool is_of_training(const std::string& folder) { return begins_with(core::lower_case(folder), "train"); }

/// Sorted, without hidden ones. Files are not looked at one by one: there may be millions.
std::vector<std::string> folders_of(const std::string& place) {
  std::vector<std::string> names;
  std::error_code error, ignored;
  for (std::filesystem::directory_iterator at(place, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name[0] != '.' && at->is_directory(ignored)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Without blanks around it, that lists made by hand have, and without "./" in front.
std::string bare_name(std::string_view name) {
  const auto drop = [&](const char* bytes) {
    const size_t begin = std::min(name.find_first_not_of(bytes), name.size());
    name.remove_prefix(begin);
  };
  drop(" \t");
  while (!name.empty() && (name.back() == ' ' || name.back() == '\t')) name.remove_suffix(1);
  while (name.size() > 2 && name[0] == '.' && (name[1] == '/' || name[1] == '\\')) {
    name.remove_prefix(2);
    drop("/\\");
  }
  return std::string(name);
}

/// How many digits the images of a folder have that are called by a number; 0: they are not.
size_t digits_of_images(const std::string& folder) {
  for (const std::string& name : names_in(folder)) {
    const std::string stem = name.substr(0, name.find('.'));
    if (has_image_name(name) && is_number_alone(stem)) return stem.size();
  }
  return 0;
}

}  // namespace

ImageFinder::ImageFinder(std::string data_dir, std::string split)
    : data_dir_(std::move(data_dir)), split_(std::move(split)) {}

std::string ImageFinder::absolute(const std::string& path) const {
  return !path.empty() && path[0] == '/' ? path : data_dir_ + "/" + path;
}

std::string ImageFinder::apply(const Rule& rule, const std::string& name) const {
  std::string path = name;
  std::replace(path.begin(), path.end(), '\\', '/');
  for (size_t i = 0; i < rule.dropped; ++i) path = path.substr(path.find('/') + 1);
  if (path.size() < rule.digits && is_number_alone(path)) path.insert(0, rule.digits - path.size(), '0');
  return (rule.folder.empty() ? "" : rule.folder + "/") + path + rule.suffix;
}

bool ImageFinder::try_rule(const Rule& rule, const std::string& name, std::string& path, FileStamp& stamp) const {
  if (rule.dropped > slashes_in(name) + static_cast<size_t>(std::count(name.begin(), name.end(), '\\'))) return false;
  path = apply(rule, name);
  stamp = stamp_of(absolute(path));
  return stamp.size >= 0;
}

/// Where images may lie, the likeliest first. Folders of another split come last, and only where this one has none.
const std::vector<std::string>& ImageFinder::folders() {
  if (!folders_.empty()) return folders_;
  folders_ = {"", split_, split_ + "/images", split_ + "_images", "images", "images/" + split_, split_ + "-images"};
  std::vector<std::string> later;  // of them the training images first: a list of no split is theirs
  for (const std::string& name : folders_of(data_dir_)) {
    if (std::count(folders_.begin(), folders_.end(), name) > 0) continue;
    (is_of_another_split(name, split_) ? later : folders_).push_back(name);
  }
  std::stable_partition(later.begin(), later.end(), is_of_training);
  const bool has_own = is_directory(data_dir_ + "/" + split_) || is_directory(data_dir_ + "/" + split_ + "_images");
  if (!has_own) folders_.insert(folders_.end(), later.begin(), later.end());
  return folders_;
}

/// Folders in folders, where archives unpack to the like of images/images/ or data/pictures/all/; of splits as above.
const std::vector<std::string>& ImageFinder::folders_below() {
  if (has_folders_below_) return folders_below_;
  has_folders_below_ = true;
  constexpr size_t kMostFolders = 64, kMostSlashes = 2;
  std::vector<std::string> outer = folders();
  for (size_t i = 0; i < outer.size() && folders_below_.size() < kMostFolders; ++i) {
    if (outer[i].empty() || slashes_in(outer[i]) >= kMostSlashes) continue;
    std::vector<std::string> inner = folders_of(data_dir_ + "/" + outer[i]), later;
    const auto others = std::stable_partition(
        inner.begin(), inner.end(), [&](const std::string& name) { return !is_of_another_split(name, split_); });
    later.assign(others, inner.end());
    inner.erase(others, inner.end());
    std::stable_partition(later.begin(), later.end(), is_of_training);
    const bool has_own = std::any_of(inner.begin(), inner.end(), [&](const std::string& name) {
      return begins_with(core::lower_case(name), core::lower_case(split_));
    });
    if (!has_own && !later.empty()) inner.push_back(later.front());
    for (const std::string& name : inner) {
      outer.push_back(outer[i] + "/" + name);
      folders_below_.push_back(outer.back());
    }
  }
  return folders_below_;
}

/// A rule as `like`, with one of the places; it is then the first one.
bool ImageFinder::find_rule(const std::string& name, const Rule& like, const std::vector<std::string>& places,
                            std::string& path, FileStamp& stamp) {
  for (const std::string& folder : places) {
    const bool fits = rules_.empty() || std::any_of(rules_.begin(), rules_.end(), [&](const Rule& rule) {
                        return family_of(rule.folder) == family_of(folder);
                      });
    if (!fits) continue;
    for (const char* const suffix : kSuffixes) {
      const Rule rule{like.dropped, folder, suffix, like.digits};
      if (!try_rule(rule, name, path, stamp)) continue;
      rules_.insert(rules_.begin(), rule);
      return true;
    }
  }
  return false;
}

std::string ImageFinder::find(const std::string& listed, FileStamp& stamp) {
  stamp = stamp_of(absolute(listed));
  if (stamp.size >= 0) {
    has_found_ = true;
    return listed;
  }
  const std::string name = bare_name(listed);
  if (name != listed) stamp = stamp_of(absolute(name));
  if (stamp.size >= 0) return name;
  std::string path;
  for (size_t i = 0; i < rules_.size(); ++i) {
    if (!try_rule(rules_[i], name, path, stamp)) continue;
    std::rotate(rules_.begin(), rules_.begin() + static_cast<std::ptrdiff_t>(i),
                rules_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    return path;
  }
  if (misses_ < kMaxMisses && find_new_rule(name, path, stamp)) return path;
  ++misses_;
  stamp = {};
  return name;
}

bool ImageFinder::find_new_rule(const std::string& name, std::string& path, FileStamp& stamp) {
  core::throw_if_stopped();
  size_t most = 0;  // of the folders that the list begins its names with, those that are not here
  std::string rest = name;
  std::replace(rest.begin(), rest.end(), '\\', '/');
  for (size_t slash = rest.find('/'); slash != std::string::npos && most < kMostDropped; slash = rest.find('/')) {
    if (slash > 0 && is_directory(data_dir_ + "/" + rest.substr(0, slash))) break;
    rest = rest.substr(slash + 1);
    ++most;
  }
  for (size_t dropped = 0; dropped <= most; ++dropped) {
    if (find_rule(name, {dropped, "", "", 0}, folders(), path, stamp)) return true;
  }
  // A name that is not there while others were is missing, and no other file stands for it.
  if (has_found_ || !rules_.empty()) return false;
  if (is_number_alone(name)) {
    for (const std::string& folder : folders()) {
      const size_t digits = digits_of_images(data_dir_ + "/" + folder);
      if (digits > name.size() && find_rule(name, {0, "", "", digits}, {folder}, path, stamp)) return true;
    }
  }
  for (size_t dropped = 0; dropped <= most; ++dropped) {
    if (find_rule(name, {dropped, "", "", 0}, folders_below(), path, stamp)) return true;
  }
  return false;
}

std::string ImageFinder::note() const {
  std::vector<std::string> folders, suffixes;
  size_t dropped = 0, digits = 0;
  const auto add = [](std::vector<std::string>& list, const std::string& text) {
    if (!text.empty() && std::count(list.begin(), list.end(), text) == 0) list.push_back(text);
  };
  for (const Rule& rule : rules_) {
    add(folders, rule.folder.empty() ? "" : core::printable(rule.folder) + "/");
    add(suffixes, rule.suffix);
    dropped = std::max(dropped, rule.dropped);
    digits = std::max(digits, rule.digits);
  }
  std::sort(folders.begin(), folders.end());
  std::string text;
  const auto join = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (!folders.empty()) join("in " + core::list_text(folders));
  if (!suffixes.empty()) join("with " + core::list_text(suffixes) + " behind the name");
  if (digits > 0) join(core::format("with zeros in front up to {} digits", digits));
  if (dropped > 0)
    join(core::format("without the first {} of the list's paths",
                      core::counted(static_cast<int64_t>(dropped), "folder")));
  return text.empty() ? "" : "images are " + text;
}

std::string ImageFinder::nearest(const std::string& name) const { return nearest_file(absolute(name)); }

}  // namespace stoker::data
