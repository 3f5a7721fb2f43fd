// SPDX-License-Identifier: Apache-2.0
// <data_dir>/<split>.h5 or several files of a split, or files with a group per split: samples and labels are data
// sets of a file. Labels are numbers of classes, or what the task learns.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "config/task_facts.h"
#include "core/error.h"
#include "core/format.h"
#include "data/dataset/hdf5_names.h"
#include "data/dataset/hdf5_part.h"
#include "data/dataset/hdf5_source.h"
#include "data/layout.h"

namespace stoker::data {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;

constexpr double kMaxNumberOfClasses = 1'000'000;

std::string shape_text(const SampleShape& shape) {
  const std::string channels = shape.channels == 1 ? "" : format(" x {}", shape.channels);
  return format("{} x {}{} {}", shape.height, shape.width, channels, element_name(shape.element));
}

class Hdf5Layout : public Layout {
 public:
  explicit Hdf5Layout(const config::DataOptions& options) : options_(options) {}

  bool has_split(const std::string& split) const override { return !places_of(split).empty(); }
  std::string found_text() const override;
  std::vector<std::string> class_names(const std::string& train_split) const override;
  std::shared_ptr<const Source> open(const std::string& split, const std::vector<std::string>& names, bool is_train,
                                     std::vector<std::string>& notes) const override;

 private:
  using Parts = std::vector<Hdf5Part>;

  std::vector<Hdf5Place> places_of(const std::string& split) const;
  const Parts& opened(const std::string& split) const;
  void check_classes(const Hdf5Part& part, double classes) const;
  void check_targets(const Hdf5Part& part, int64_t columns) const;

  const config::DataOptions options_;
  mutable std::map<std::string, Parts> opened_;  ///< what has been read: names of classes and samples need the same
};

std::vector<Hdf5Place> Hdf5Layout::places_of(const std::string& split) const {
  std::vector<Hdf5Place> places;
  for (const std::string& path : hdf5_files_of(options_.data_dir, split)) places.push_back({path, ""});
  if (!places.empty()) return places;
  const std::vector<std::string> whole = whole_hdf5_files(options_.data_dir);
  if (whole.empty()) return {};
  bool has_train_group = false;
  for (const std::string& path : whole) {
    const Hdf5File file(path);
    if (file.has_group(split)) places.push_back({path, split});
    has_train_group = has_train_group || file.has_group(options_.train_split);
  }
  if (!places.empty() || has_train_group) return places;
  // Without groups all of it is the training split, of which a part is held out.
  if (split != options_.train_split || options_.val_fraction <= 0) return {};
  for (const std::string& path : whole) places.push_back({path, ""});
  return places;
}

std::string Hdf5Layout::found_text() const {
  constexpr size_t kMax = 40;
  std::string text;
  std::vector<std::string> files = hdf5_files_in(options_.data_dir);
  if (files.size() > kMax) files.resize(kMax);
  for (const std::string& path : files) {
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

std::vector<std::string> Hdf5Layout::class_names(const std::string& train_split) const {
  const Parts& parts = opened(train_split);
  const LabelArray& labels = parts.front().labels;
  if (options_.task == config::TaskKind::head_pose) {
    if (labels.columns() != 3) parts.front().fail_labels("head-pose learns 3 columns: yaw, pitch, roll");
    return {"yaw", "pitch", "roll"};
  }
  std::vector<std::string> names;
  if (config::learns_numbers(options_.task)) {
    const std::string stem = std::filesystem::path(labels.name).filename().string();
    if (labels.dims.size() == 1) return {stem};
    for (int64_t i = 0; i < labels.columns(); ++i) names.push_back(format("{}{}", stem, i));
    return names;
  }
  double largest = 0;
  for (const Hdf5Part& part : parts) {
    check_classes(part, kMaxNumberOfClasses);
    largest = std::max(largest, *std::max_element(part.labels.values.begin(), part.labels.values.end()));
  }
  int64_t classes = static_cast<int64_t>(largest) + 1;
  if (options_.task == config::TaskKind::binary) classes = std::max<int64_t>(2, classes);
  if (!options_.num_classes.is_auto()) classes = options_.num_classes.value();
  for (int64_t i = 0; i < classes; ++i) names.push_back(std::to_string(i));
  return names;
}

std::shared_ptr<const Source> Hdf5Layout::open(const std::string& split, const std::vector<std::string>& names, bool,
                                               std::vector<std::string>& notes) const {
  opened(split);
  Parts parts = std::move(opened_.extract(split).mapped());
  for (const std::string& note : parts.front().notes) notes.push_back(split + ": " + note);
  if (parts.size() > 1) {
    notes.push_back(format("{}: {} files like it, {} to {}, one behind the other", split, parts.size(),
                           core::printable(parts.front().place.path), core::printable(parts.back().place.path)));
  }
  const auto learned = static_cast<int64_t>(names.size());
  Hdf5Samples samples;
  samples.shape = parts.front().shape;
  for (Hdf5Part& part : parts) {
    const std::vector<double>& values = part.labels.values;
    if (!config::learns_numbers(options_.task)) {
      check_classes(part, static_cast<double>(learned));
      samples.labels.insert(samples.labels.end(), values.begin(), values.end());
    } else {
      check_targets(part, learned);
      samples.targets.insert(samples.targets.end(), values.begin(), values.end());
    }
    samples.files.push_back({std::move(part.array), part.channels_first, part.place.text(), std::move(part.staged)});
  }
  const std::vector<std::string> none;
  const bool has_targets = !samples.targets.empty();
  return make_hdf5_source(std::move(samples), has_targets ? none : names, has_targets ? names : none);
}

/// Opens the files of a split, once. They hold samples of one shape and labels of one kind.
const Hdf5Layout::Parts& Hdf5Layout::opened(const std::string& split) const {
  const auto known = opened_.find(split);
  if (known != opened_.end()) return known->second;
  Parts parts;
  const std::vector<Hdf5Place> places = places_of(split);
  std::shared_ptr<const StagedFiles> copies;
  std::string note;
  if (!options_.stage_dir.empty() && !places.empty()) {
    std::vector<std::string> paths;
    for (const Hdf5Place& place : places) paths.push_back(place.path);
    copies = StagedFiles::stage(paths, options_.stage_dir, note);
  }
  for (const Hdf5Place& place : places) {
    parts.push_back(open_hdf5_part(options_, place, static_cast<int64_t>(places.size()), copies));
    const Hdf5Part &first = parts.front(), &last = parts.back();
    const auto refuse = [&](const std::string& cause) {
      throw Error(ErrorKind::data,
                  format("{} and {} {}", core::printable(first.place.path), core::printable(last.place.path), cause),
                  "the files of a split are one data set: write them alike, or keep them in folders of their own");
    };
    if (first.shape != last.shape) {
      refuse(format("hold samples of {} and of {}", shape_text(first.shape), shape_text(last.shape)));
    }
    if (first.labels.columns() != last.labels.columns()) {
      refuse(format("hold labels of {} and of {} columns", first.labels.columns(), last.labels.columns()));
    }
  }
  if (!note.empty()) parts.front().notes.insert(parts.front().notes.begin(), note);
  return opened_.emplace(split, std::move(parts)).first->second;
}

/// Labels are whole numbers below `classes`, one per sample.
void Hdf5Layout::check_classes(const Hdf5Part& part, double classes) const {
  const LabelArray& labels = part.labels;
  if (!labels.is_whole || labels.dims.size() != 1) {
    part.fail_labels(format("task {} learns classes, but the labels are {}{}", config::task_name(options_.task),
                            labels.type, labels.dims.size() == 1 ? "" : format(" with {} columns", labels.columns())),
                     "write the number of the class of each sample as an integer, or choose --task regression or "
                     "multilabel");
  }
  const auto bad = std::find_if(labels.values.begin(), labels.values.end(),
                                [&](double label) { return label < 0 || label >= classes; });
  if (bad == labels.values.end()) return;
  part.fail_labels(format("label {:.0f} of sample {} is out of range: there are {:.0f} classes, 0 to {:.0f}", *bad,
                          bad - labels.values.begin(), classes, classes - 1),
                   "if the data has more classes, say so with --num-classes");
}

void Hdf5Layout::check_targets(const Hdf5Part& part, int64_t columns) const {
  const LabelArray& labels = part.labels;
  if (labels.columns() != columns) {
    part.fail_labels(format("{} columns, but {} numbers are learned", labels.columns(), columns));
  }
  const bool is_multilabel = options_.task == config::TaskKind::multilabel;
  const auto bad = std::find_if(labels.values.begin(), labels.values.end(), [&](double value) {
    return is_multilabel ? value != 0 && value != 1 : !std::isfinite(static_cast<float>(value));
  });
  if (bad == labels.values.end()) return;
  part.fail_labels(format("{} of sample {} is not {}", *bad, (bad - labels.values.begin()) / columns,
                          is_multilabel ? "0 or 1" : "a finite number"));
}

}  // namespace

std::unique_ptr<Layout> make_hdf5_layout(const config::DataOptions& options) {
  return std::make_unique<Hdf5Layout>(options);
}

}  // namespace stoker::data
