// SPDX-License-Identifier: Apache-2.0
#include "data/storage/image_finder.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "core/format.h"

namespace stoker::data {
namespace {

constexpr std::array kSuffixes = {"",     ".jpg",  ".png", ".jpeg", ".JPG",  ".JPEG", ".PNG", ".tif", ".tiff",
                                  ".bmp", ".webp", ".ppm", ".TIF",  ".TIFF", ".jpe",  ".gif", ".jp2", ".pgm"};
constexpr std::array kSplitWords = {"train", "val", "test", "dev"};
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
std::vector<std::string> ImageFinder::folders() const {
  std::vector<std::string> all = {
      "", split_, split_ + "/images", split_ + "_images", "images", "images/" + split_, split_ + "-images"};
  std::vector<std::string> later;  // of them the training images first: a list of no split is theirs
  for (const std::string& name : names_in(data_dir_)) {
    if (name[0] == '.' || !is_directory(data_dir_ + "/" + name)) continue;
    if (std::count(all.begin(), all.end(), name) > 0) continue;
    (is_of_another_split(name, split_) ? later : all).push_back(name);
  }
  std::stable_partition(later.begin(), later.end(),
                        [](const std::string& name) { return begins_with(core::lower_case(name), "train"); });
  const bool has_own = is_directory(data_dir_ + "/" + split_) || is_directory(data_dir_ + "/" + split_ + "_images");
  if (!has_own) all.insert(all.end(), later.begin(), later.end());
  return all;
}

/// Folders in folders, where archives unpack to the like of images/images/ or data/pictures/all/.
std::vector<std::string> ImageFinder::folders_below() const {
  constexpr size_t kMostFolders = 64, kMostSlashes = 2;
  std::vector<std::string> all = folders();
  all.erase(std::remove(all.begin(), all.end(), ""), all.end());
  const size_t known = all.size();
  for (size_t i = 0; i < all.size() && all.size() < known + kMostFolders; ++i) {
    if (slashes_in(all[i]) >= kMostSlashes) continue;
    const std::string outer = all[i];
    for (const std::string& name : names_in(data_dir_ + "/" + outer)) {
      if (name[0] != '.' && is_directory(data_dir_ + "/" + outer + "/" + name)) all.push_back(outer + "/" + name);
    }
  }
  return {all.begin() + static_cast<std::ptrdiff_t>(known), all.end()};
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

std::string ImageFinder::find(const std::string& name, FileStamp& stamp) {
  stamp = stamp_of(absolute(name));
  if (stamp.size >= 0) return name;
  if (name.size() > 2 && begins_with(name, "./")) return find(name.substr(2), stamp);
  constexpr const char* kBlanks = " \t";  // that lists made by hand have around their fields
  const size_t begin = name.find_first_not_of(kBlanks), end = name.find_last_not_of(kBlanks) + 1;
  if (begin != std::string::npos && end - begin < name.size()) return find(name.substr(begin, end - begin), stamp);
  std::string path;
  for (size_t i = 0; i < rules_.size(); ++i) {
    if (!try_rule(rules_[i], name, path, stamp)) continue;
    std::rotate(rules_.begin(), rules_.begin() + static_cast<std::ptrdiff_t>(i),
                rules_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    return path;
  }
  if (misses_ < kMaxMisses) {
    size_t most = 0;  // of the folders that the list begins its names with, those that are not here
    std::string rest = name;
    std::replace(rest.begin(), rest.end(), '\\', '/');
    for (size_t slash = rest.find('/'); slash != std::string::npos; slash = rest.find('/')) {
      if (slash > 0 && is_directory(data_dir_ + "/" + rest.substr(0, slash))) break;
      rest = rest.substr(slash + 1);
      ++most;
    }
    for (size_t dropped = 0; dropped <= most; ++dropped) {
      if (find_rule(name, {dropped, "", "", 0}, folders(), path, stamp)) return path;
    }
    if (is_number_alone(name)) {
      for (const std::string& folder : folders()) {
        const size_t digits = digits_of_images(data_dir_ + "/" + folder);
        if (digits > name.size() && find_rule(name, {0, "", "", digits}, {folder}, path, stamp)) return path;
      }
    }
    for (size_t dropped = 0; dropped <= most; ++dropped) {
      if (find_rule(name, {dropped, "", "", 0}, folders_below(), path, stamp)) return path;
    }
    ++misses_;
  }
  stamp = {};
  return name;
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
