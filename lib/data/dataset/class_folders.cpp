// SPDX-License-Identifier: Apache-2.0
#include "data/dataset/class_folders.h"

#include <algorithm>

#include "core/error.h"
#include "core/format.h"
#include "data/dataset/split_list.h"

namespace stoker::data {
namespace {

std::vector<std::string> only_in_first(const std::vector<std::string>& first, const std::vector<std::string>& second) {
  std::vector<std::string> names;
  std::set_difference(first.begin(), first.end(), second.begin(), second.end(), std::back_inserter(names));
  for (std::string& name : names) name = core::printable(name);
  return names;
}

/// A class of which this split has no folder is no error; a folder that is no class is.
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
      "name the folders as the classes; of a class without images there may be no folder outside of training");
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

bool ClassFolders::has_split(const std::string& split) const {
  return (root_is_train_ && split == options_.train_split) || is_directory(folder_of(split));
}

std::string ClassFolders::folder_of(const std::string& split) const {
  return root_is_train_ && split == options_.train_split ? options_.data_dir : options_.data_dir + "/" + split;
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
                    expected_tree());
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
  auto source = scan->source(class_names, scan_notes);
  for (const std::string& line : scan_notes.lines()) notes.push_back(split + ": " + line);
  return source;
}

void ClassFolders::on_empty_class(const std::string& folder, bool is_train, int64_t samples_before,
                                  ScanNotes& notes) const {
  if (!is_train) return notes.count("class folders without " + samples_word(), folder);
  throw core::Error(core::ErrorKind::data,
                    core::format("class folder {} has 0 {} ({} found in the classes before it)",
                                 core::printable(folder), samples_word(), core::count_text(samples_before)),
                    "add images (JPEG, PNG, BMP, WebP, TIFF, GIF, PNM or JPEG 2000) or remove the folder");
}

}  // namespace stoker::data
