// SPDX-License-Identifier: Apache-2.0
// Arrays of NumPy: x_train.npy and y_train.npy, train_images.npy, a .npz file with such members or one per split, or
// images.npy and labels.npy.
#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/format.h"
#include "core/system/file.h"
#include "data/archive/zip_directory.h"
#include "data/arrays/numpy_array.h"
#include "data/arrays/pixel_source.h"
#include "data/layout.h"
#include "data/storage/byte_reader.h"
#include "data/storage/tree_walk.h"

namespace stoker::data {
namespace {

/// Where an array lies: a file, or a member of one.
struct ArrayPlace {
  std::string path, member;
  std::string text() const { return core::printable(path) + (member.empty() ? "" : ": " + core::printable(member)); }
};

using ArrayPlaces = std::map<std::string, ArrayPlace>;  // by name in lower case

std::string lower(std::string text) {
  text = core::lower_case(std::move(text));
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

/// Adds the members of a .npz file.
void add_members(const std::string& path, ArrayPlaces& places) {
  const FileBytes file(path);
  for (const ZipMember& member : read_zip_directory(file)) {
    if (!core::ends_with(member.name, ".npy")) continue;
    places.emplace(lower(member.name.substr(0, member.name.size() - 4)), ArrayPlace{path, member.name});
  }
}

void add_array_files(const std::string& folder, ArrayPlaces& places) {
  for (const std::string& name : names_in(folder)) {
    const std::string key = lower(name);
    if (core::ends_with(key, ".npy"))
      places.emplace(key.substr(0, key.size() - 4), ArrayPlace{folder + "/" + name, ""});
  }
}

PythonArray load_array(const ArrayPlace& place) {
  const FileBytes file(place.path);
  std::string content;
  const auto array_of = [&] {
    PythonArray array = read_npy(std::move(content), place.text());
    array.path = place.path;
    array.member = place.member;
    return array;
  };
  if (place.member.empty()) {
    require_free_memory(place.path, file.size());
    content.resize(file.size());
    file.read(0, content.data(), content.size());
    return array_of();
  }
  for (const ZipMember& member : read_zip_directory(file)) {
    if (member.name != place.member) continue;
    require_free_memory(place.path, member.bytes);
    content.resize(member.bytes);
    read_stored(file, {0, member.begin, member.stored_bytes, member.bytes, member.deflated, member.checksum},
                core::printable(member.name), content.data());
  }
  return array_of();
}

struct ImagesAndLabels {
  ArrayPlace images, labels;
};

class NumpyLayout : public Layout {
 public:
  explicit NumpyLayout(const config::DataOptions& options) : options_(options) {
    const std::string& place = options.data_dir;
    if (is_directory(place)) {
      add_array_files(place, all_);
      for (const std::string& name : names_in(place)) {
        if (core::ends_with(lower(name), ".npz")) packed_.push_back(name);
      }
      if (packed_.size() == 1) add_members(place + "/" + packed_[0], all_);
    } else if (core::ends_with(lower(place), ".npz")) {
      add_members(place, all_);
    }
  }

  bool has_split(const std::string& split) const override {
    ImagesAndLabels ignored;
    return find(split, ignored);
  }

  std::string found_text() const override {
    std::vector<std::string> names;
    for (const auto& [name, place] : all_) names.push_back(core::printable(name));
    return names.empty() ? "" : "\nthere are the arrays " + core::list_text(names);
  }

  std::vector<std::string> class_names(const std::string& train_split) const override {
    if (!options_.num_classes.is_auto()) return numbered_classes(options_.num_classes.value());
    ImagesAndLabels found;
    find(train_split, found);
    const PythonArray array = load_array(found.labels);
    if (array.shape.size() == 2 && array.shape[1] > 1) return numbered_classes(array.shape[1]);
    const std::vector<int32_t> labels = labels_in(array);
    if (labels.empty()) array.fail("it holds 0 labels", "write one label per image");
    return numbered_classes(int64_t{*std::max_element(labels.begin(), labels.end())} + 1);
  }

  std::shared_ptr<const Source> open(const std::string& split, const std::vector<std::string>& class_names, bool,
                                     std::vector<std::string>& notes) const override {
    ImagesAndLabels found;
    find(split, found);
    notes.push_back(core::format("{}: images of {}, labels of {}", split, found.images.text(), found.labels.text()));
    HeldPixels held;
    held.kind = "numpy";
    held.path = found.images.path;
    PythonArray images = load_array(found.images);
    const PythonArray labels = load_array(found.labels);
    const int64_t count = images.shape.empty() ? 0 : images.shape[0];
    held.pixels = pixels_in(std::move(images), held.height, held.width, held.channels);
    held.labels = labels_in(labels);
    if (static_cast<int64_t>(held.labels.size()) != count) {
      labels.fail(core::format("{} labels for the {} images of {}", held.labels.size(), count, found.images.text()),
                  "write one label per image");
    }
    return make_pixel_source(std::move(held), found.labels.text(), class_names);
  }

 private:
  /// The first pair of names that are there.
  static bool find_pair(const ArrayPlaces& places, const std::vector<std::string>& images,
                        const std::vector<std::string>& labels, ImagesAndLabels& found) {
    const auto first_of = [&](const std::vector<std::string>& names, ArrayPlace& place) {
      for (const std::string& name : names) {
        const auto at = places.find(name);
        if (at == places.end()) continue;
        place = at->second;
        return true;
      }
      return false;
    };
    return first_of(images, found.images) && first_of(labels, found.labels);
  }

  static bool find_whole(const ArrayPlaces& places, ImagesAndLabels& found) {
    return find_pair(places, {"images", "x", "data", "imgs", "image", "features", "arr_0"},
                     {"labels", "y", "label", "targets", "target", "classes", "arr_1"}, found);
  }

  bool find(const std::string& split, ImagesAndLabels& found) const {
    const std::string name = lower(split);
    std::vector<std::string> images, labels;
    for (const char* const word : {"images", "x", "data", "imgs", "image", "features"}) {
      for (const char* const between : {"_", ""}) {
        images.push_back(name + between + word);
        images.push_back(word + std::string(between) + name);
      }
    }
    images.push_back(name);
    for (const char* const word : {"labels", "y", "label", "targets", "target", "classes"}) {
      for (const char* const between : {"_", ""}) {
        labels.push_back(name + between + word);
        labels.push_back(word + std::string(between) + name);
      }
    }
    if (find_pair(all_, images, labels, found)) return true;
    ArrayPlaces own;  // of a file or a folder for this split alone
    for (const std::string& file : packed_) {
      if (lower(file) == name + ".npz") add_members(options_.data_dir + "/" + file, own);
    }
    add_array_files(options_.data_dir + "/" + split, own);
    if (find_whole(own, found) || find_pair(own, images, labels, found)) return true;
    return split == options_.train_split && find_whole(all_, found);
  }

  const config::DataOptions options_;
  ArrayPlaces all_;
  std::vector<std::string> packed_;  ///< .npz files of the folder
};

}  // namespace

std::unique_ptr<Layout> make_numpy_layout(const config::DataOptions& options) {
  return std::make_unique<NumpyLayout>(options);
}

}  // namespace stoker::data
