// SPDX-License-Identifier: Apache-2.0
// <data_dir>/<split>.h5, or one file with a group per split: samples and labels are data sets of a file.
// Labels are numbers of classes, or what the task learns.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "config/task_facts.h"
#include "core/error.h"
#include "core/format.h"
#include "core/system/file.h"
#include "data/container/hdf5_file.h"
#include "data/dataset/hdf5_names.h"
#include "data/dataset/hdf5_source.h"
#include "data/layout.h"

namespace stoker::data {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;

constexpr double kMaxNumberOfClasses = 1'000'000;

class Hdf5Layout : public Layout {
 public:
  explicit Hdf5Layout(const config::DataOptions& options) : options_(options) {}

  bool has_split(const std::string& split) const override { return !place_of(split).path.empty(); }

  std::string found_text() const override;

  std::vector<std::string> class_names(const std::string& train_split) const override {
    const Opened& opened = this->opened(train_split);
    const LabelArray& labels = opened.labels;
    if (options_.task == config::TaskKind::head_pose) {
      if (labels.columns() != 3) fail_labels(opened, "head-pose learns 3 columns: yaw, pitch, roll");
      return {"yaw", "pitch", "roll"};
    }
    std::vector<std::string> names;
    if (config::learns_numbers(options_.task)) {
      const std::string stem = std::filesystem::path(labels.name).filename().string();
      if (labels.dims.size() == 1) return {stem};
      for (int64_t i = 0; i < labels.columns(); ++i) names.push_back(format("{}{}", stem, i));
      return names;
    }
    check_classes(opened, kMaxNumberOfClasses);
    const double largest = *std::max_element(labels.values.begin(), labels.values.end());
    int64_t classes = static_cast<int64_t>(largest) + 1;
    if (options_.task == config::TaskKind::binary) classes = std::max<int64_t>(2, classes);
    if (!options_.num_classes.is_auto()) classes = options_.num_classes.value();
    for (int64_t i = 0; i < classes; ++i) names.push_back(std::to_string(i));
    return names;
  }

  std::shared_ptr<const Source> open(const std::string& split, const std::vector<std::string>& names, bool,
                                     std::vector<std::string>& notes) const override {
    opened(split);
    Opened opened = std::move(opened_.extract(split).mapped());
    for (const std::string& note : opened.notes) notes.push_back(split + ": " + note);
    const auto learned = static_cast<int64_t>(names.size());
    Hdf5Samples samples;
    if (!config::learns_numbers(options_.task)) {
      check_classes(opened, static_cast<double>(learned));
      samples.labels.assign(opened.labels.values.begin(), opened.labels.values.end());
    } else {
      check_targets(opened, learned);
      samples.targets.assign(opened.labels.values.begin(), opened.labels.values.end());
    }
    samples.array = std::move(opened.array);
    samples.shape = opened.shape;
    samples.channels_first = opened.channels_first;
    samples.path = opened.place.group.empty() ? opened.place.path : opened.place.path + ":" + opened.place.group;
    samples.staged = std::move(opened.staged);
    const std::vector<std::string> none;
    const bool has_targets = !samples.targets.empty();
    return make_hdf5_source(std::move(samples), has_targets ? none : names, has_targets ? names : none);
  }

 private:
  /// A file and the group in it that a split is; the root where it is the whole file.
  struct Place {
    std::string path, group;
    std::string inside(const std::string& name) const { return group.empty() ? name : group + "/" + name; }
  };
  struct Opened {
    Place place;
    std::shared_ptr<const StagedFile> staged;
    std::shared_ptr<const SampleArray> array;
    LabelArray labels;
    SampleShape shape;
    bool channels_first = false;
    std::vector<std::string> notes;
  };

  Place place_of(const std::string& split) const;
  const Opened& opened(const std::string& split) const;
  std::string found_name(const Hdf5File& file, const Place& place, const std::string& given,
                         const std::vector<const char*>& usual, const char* option, std::string& note) const;
  void read_shape(Opened& opened) const;
  void describe(Opened& opened, const std::vector<std::string>& found) const;
  void check_classes(const Opened& opened, double classes) const;
  void check_targets(const Opened& opened, int64_t columns) const;
  [[noreturn]] void fail_labels(const Opened& opened, const std::string& cause, const std::string& hint = "") const;

  const config::DataOptions options_;
  mutable std::map<std::string, Opened> opened_;  ///< what has been read: names of classes and samples need the same
  mutable std::map<std::string, std::shared_ptr<const StagedFile>> staged_;  ///< by the path of the original
};

Hdf5Layout::Place Hdf5Layout::place_of(const std::string& split) const {
  const std::string own_file = hdf5_file_of(options_.data_dir, split);
  if (!own_file.empty()) return {own_file, ""};
  const std::string only = only_hdf5_file(options_.data_dir);
  if (only.empty()) return {};
  const Hdf5File file(only);
  if (file.has_group(split)) return {only, split};
  // Without groups the whole file is the training split, of which a part is held out.
  const bool is_whole = split == options_.train_split && options_.val_fraction > 0;
  return is_whole && !file.has_group(options_.train_split) ? Place{only, ""} : Place{};
}

std::string Hdf5Layout::found_text() const {
  std::string text;
  for (const std::string& path : hdf5_files_in(options_.data_dir)) {
    text += "\n  " + core::printable(std::filesystem::path(path).filename().string()) + ":";
    try {
      const std::vector<std::string> lines = Hdf5File(path).data_set_lines();
      for (const std::string& line : lines) text += (lines.size() == 1 ? " " : "\n    ") + line;
    } catch (const Error& error) {
      text += format(" {}", error.what());
    }
  }
  return text.empty() ? "\nthere are no .h5 files" : "\nthere are" + text;
}

/// Opens a split and reads its labels, once.
const Hdf5Layout::Opened& Hdf5Layout::opened(const std::string& split) const {
  const auto known = opened_.find(split);
  if (known != opened_.end()) return known->second;
  Opened opened;
  opened.place = place_of(split);
  std::string path = opened.place.path;
  if (!options_.stage_dir.empty()) {
    std::shared_ptr<const StagedFile>& copy = staged_[path];
    if (copy == nullptr) copy = StagedFile::stage(path, options_.stage_dir, opened.notes);
    opened.staged = copy;
    path = copy->path();
  }
  const Hdf5File file(path);
  std::vector<std::string> found(2);
  const std::string input = found_name(file, opened.place, options_.hdf5_input, kUsualInputs, "hdf5-input", found[0]);
  const std::string label = found_name(file, opened.place, options_.hdf5_label, kUsualLabels, "hdf5-label", found[1]);
  opened.array = std::make_shared<SampleArray>(file.bytes(), file.array(input));
  opened.labels = file.labels(label, opened.array->samples());
  read_shape(opened);
  describe(opened, found);
  return opened_.emplace(split, std::move(opened)).first->second;
}

/// The data set that was named, else the first of the usual names that is there.
std::string Hdf5Layout::found_name(const Hdf5File& file, const Place& place, const std::string& given,
                                   const std::vector<const char*>& usual, const char* option, std::string& note) const {
  const auto refuse = [&](const std::string& cause) {
    std::string list;
    for (const std::string& line : file.data_set_lines()) list += "\n  " + line;
    throw Error(ErrorKind::data, format("{}: {}", core::printable(place.path), cause),
                format("name it with --{}; {}{}", option,
                       list.empty() ? "the file holds no data sets" : "the file holds", list));
  };
  if (!given.empty()) {
    // "train/x" names x of every split.
    const std::string prefix = options_.train_split + "/";
    const std::string name = place.inside(given.rfind(prefix, 0) == 0 ? given.substr(prefix.size()) : given);
    if (!file.has_data_set(name)) refuse(format("there is no data set {}", core::printable(name)));
    return name;
  }
  std::vector<std::string> present;
  for (const char* const name : usual) {
    if (file.has_data_set(place.inside(name))) present.push_back(name);
  }
  if (present.empty()) {
    refuse(format("no data set{} is called {}", place.group.empty() ? "" : " in group " + core::printable(place.group),
                  core::list_text({usual.begin(), usual.end()}, usual.size())));
  }
  if (present.size() > 1) {
    note = format("of {} the first usual name is taken: --{} names another", core::list_text(present), option);
  }
  return place.inside(present.front());
}

/// [N, H, W], [N, C, H, W], or [N, H, W, C] where the second number cannot be that of channels.
void Hdf5Layout::read_shape(Opened& opened) const {
  const NumberArray& array = opened.array->array();
  const std::vector<int64_t>& dims = array.dims;
  const auto refuse = [&](const std::string& cause) {
    throw Error(ErrorKind::data,
                format("{}: data set {}: {}", core::printable(opened.place.path), core::printable(array.name), cause),
                "samples are [N, H, W], [N, C, H, W] or [N, H, W, C] with 1 or 3 channels");
  };
  const auto can_be_channels = [](int64_t side) { return side == 1 || side == 3; };
  std::vector<int64_t> image = {dims.begin() + 1, dims.end()};  // H, W, C
  if (image.size() == 2) {
    image.push_back(1);
  } else if (image.size() == 3 && can_be_channels(image[0])) {
    opened.channels_first = true;
    image = {image[1], image[2], image[0]};
    opened.notes.push_back(format("{} is taken as [N, C, H, W]", array.name));
  } else if (image.size() == 3 && can_be_channels(image[2])) {
    opened.notes.push_back(format("{} is taken as [N, H, W, C]", array.name));
  } else {
    std::string text;
    for (const int64_t side : dims) text += (text.empty() ? "" : ", ") + std::to_string(side);
    refuse(format("its shape is [{}]", text));
  }
  constexpr int64_t kMaxSide = 65'535;
  if (image[0] > kMaxSide || image[1] > kMaxSide) refuse(format("samples of {} x {}", image[0], image[1]));
  opened.shape = {0, image[0], image[1], image[2], array.element};
}

void Hdf5Layout::describe(Opened& opened, const std::vector<std::string>& found) const {
  const NumberArray& array = opened.array->array();
  std::string storage = "in one piece";
  if (!array.chunk.empty()) {
    storage = format("in {} chunks", core::count_text(static_cast<int64_t>(array.places.size())));
    for (const ChunkFilter filter : array.filters)
      storage += filter == ChunkFilter::deflate ? ", deflated" : ", shuffled";
  }
  opened.notes.push_back(format("{}: {} {} of {} x {}, {}; labels {} {}", opened.place.path, array.name,
                                element_name(array.element), opened.shape.height, opened.shape.width, storage,
                                opened.labels.name, opened.labels.type));
  for (const std::string& note : found) {
    if (!note.empty()) opened.notes.push_back(note);
  }
  if (opened.array->decoded_together() > 1) {
    opened.notes.push_back(
        format("{} samples share a deflated chunk, which a full shuffle decodes for few of them at a time: "
               "--shuffle-buffer {} keeps neighbours together",
               opened.array->decoded_together(), 64 * opened.array->decoded_together()));
  }
}

void Hdf5Layout::fail_labels(const Opened& opened, const std::string& cause, const std::string& hint) const {
  throw Error(
      ErrorKind::data,
      format("{}: data set {}: {}", core::printable(opened.place.path), core::printable(opened.labels.name), cause),
      hint);
}

/// Labels are whole numbers below `classes`, one per sample.
void Hdf5Layout::check_classes(const Opened& opened, double classes) const {
  const LabelArray& labels = opened.labels;
  if (!labels.is_whole || labels.dims.size() != 1) {
    fail_labels(opened,
                format("task {} learns classes, but the labels are {}{}", config::task_name(options_.task), labels.type,
                       labels.dims.size() == 1 ? "" : format(" with {} columns", labels.columns())),
                "write the number of the class of each sample as an integer, or choose --task regression or "
                "multilabel");
  }
  const auto bad = std::find_if(labels.values.begin(), labels.values.end(),
                                [&](double label) { return label < 0 || label >= classes; });
  if (bad == labels.values.end()) return;
  fail_labels(opened,
              format("label {:.0f} of sample {} is out of range: there are {:.0f} classes, 0 to {:.0f}", *bad,
                     bad - labels.values.begin(), classes, classes - 1),
              "if the data has more classes, say so with --num-classes");
}

void Hdf5Layout::check_targets(const Opened& opened, int64_t columns) const {
  const LabelArray& labels = opened.labels;
  if (labels.columns() != columns) {
    fail_labels(opened, format("{} columns, but {} numbers are learned", labels.columns(), columns));
  }
  const bool is_multilabel = options_.task == config::TaskKind::multilabel;
  const auto bad = std::find_if(labels.values.begin(), labels.values.end(), [&](double value) {
    return is_multilabel ? value != 0 && value != 1 : !std::isfinite(static_cast<float>(value));
  });
  if (bad == labels.values.end()) return;
  fail_labels(opened, format("{} of sample {} is not {}", *bad, (bad - labels.values.begin()) / columns,
                             is_multilabel ? "0 or 1" : "a finite number"));
}

}  // namespace

std::unique_ptr<Layout> make_hdf5_layout(const config::DataOptions& options) {
  return std::make_unique<Hdf5Layout>(options);
}

}  // namespace stoker::data
