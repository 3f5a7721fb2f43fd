// SPDX-License-Identifier: Apache-2.0
#include "data/dataset/hdf5_source.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>

#include "config/task_facts.h"
#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"
#include "data/dataset/file_source.h"
#include "data/dataset/hdf5_part.h"
#include "data/dataset/held_out.h"
#include "data/layout.h"
#include "data/source.h"

namespace stoker::data {
namespace {

/// [channels, area] becomes [area, channels].
template <typename Number>
void interleave(const uint8_t* planes, int64_t channels, int64_t area, uint8_t* out) {
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t i = 0; i < area; ++i) {
      std::memcpy(out + (i * channels + c) * static_cast<int64_t>(sizeof(Number)),
                  planes + (c * area + i) * static_cast<int64_t>(sizeof(Number)), sizeof(Number));
    }
  }
}

class Hdf5Source : public LeafSource, private StoredSamples {
 public:
  Hdf5Source(Hdf5Samples samples, std::vector<std::string> class_names, std::vector<std::string> target_names)
      : samples_(std::move(samples)) {
    class_names_ = std::move(class_names);
    target_names_ = std::move(target_names);
    for (const Hdf5SampleFile& file : samples_.files) ends_.push_back(size() + file.array->samples());
    fingerprint_ = digest();
  }

  int64_t size() const override { return ends_.empty() ? 0 : ends_.back(); }
  int64_t label(int64_t index) const override {
    return samples_.labels.empty() ? -1 : samples_.labels[static_cast<size_t>(index)];
  }
  void targets(int64_t index, float* out) const override {
    std::copy_n(samples_.targets.data() + index * num_targets(), num_targets(), out);
  }
  std::string name(int64_t index) const override {
    const Found found = find(index);
    return core::format("{}#{}", found.file.path, found.index);
  }
  std::string relative_name(int64_t index) const override { return core::format("#{}", index); }
  SampleShape fixed_shape() const override { return samples_.shape; }
  SourceMemory memory() const override {
    size_t list_bytes = samples_.labels.size() * sizeof(int32_t) + samples_.targets.size() * sizeof(float);
    for (const Hdf5SampleFile& file : samples_.files) {
      list_bytes += file.array->array().places.size() * sizeof(ChunkPlace);
    }
    return {static_cast<int64_t>(list_bytes), 0};
  }
  const StoredSamples* stored() const override { return this; }

  std::vector<int64_t> run_ends() const override {
    std::vector<int64_t> all;
    for (size_t i = 0; i < ends_.size(); ++i) {
      const int64_t begin = i == 0 ? 0 : ends_[i - 1];
      for (const int64_t end : samples_.files[i].array->run_ends()) all.push_back(begin + end);
    }
    return all;
  }
  int64_t stored_bytes(int64_t) const override { return -1; }  // chunks hold several samples, or parts of them
  std::string read_head(int64_t index, int64_t, std::vector<uint8_t>& buffer, SampleContent& content) const override {
    return read(index, buffer, content);
  }

  std::string read(int64_t index, std::vector<uint8_t>& buffer, SampleContent& content) const override {
    thread_local ArrayScratch scratch;
    const SampleShape& shape = samples_.shape;
    const auto bytes = static_cast<size_t>(shape.image_bytes());
    const Found found = find(index);
    const bool has_planes = found.file.channels_first && shape.channels > 1;
    const size_t needed = has_planes ? 2 * bytes : bytes;
    if (buffer.size() < needed) buffer.resize(needed);
    uint8_t* const stored = buffer.data() + (has_planes ? bytes : 0);
    if (std::string cause = found.file.array->read(found.index, scratch, stored); !cause.empty()) return cause;
    if (has_planes) interleave_planes(stored, buffer.data());
    content.set_pixels(buffer.data(), shape);
    return "";
  }

 private:
  struct Found {
    const Hdf5SampleFile& file;
    int64_t index;  ///< in the file
  };
  Found find(int64_t index) const {
    const auto at = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin());
    return {samples_.files[at], at == 0 ? index : index - ends_[at - 1]};
  }
  void interleave_planes(const uint8_t* planes, uint8_t* out) const {
    const int64_t channels = samples_.shape.channels, area = samples_.shape.height * samples_.shape.width;
    switch (samples_.shape.element) {
      case Element::uint8: return interleave<uint8_t>(planes, channels, area, out);
      case Element::float16: return interleave<uint16_t>(planes, channels, area, out);
      case Element::float32: return interleave<uint32_t>(planes, channels, area, out);
    }
  }

  std::string digest() const {
    constexpr int64_t kLookedAt = 64;
    const SampleShape& shape = samples_.shape;
    core::Hasher hasher;
    hasher.add(core::format("hdf5 {} x {} x {} {} {} samples, {} classes\n", shape.height, shape.width, shape.channels,
                            element_name(shape.element), size(), class_names_.size()));
    for (const std::string& learned : learned_names()) hasher.add(core::format("{}:{}", learned.size(), learned));
    hasher.add(samples_.labels.data(), samples_.labels.size() * sizeof(int32_t));
    hasher.add(samples_.targets.data(), samples_.targets.size() * sizeof(float));
    std::vector<uint8_t> buffer;
    for (int64_t i = 0; i < std::min(kLookedAt, size()); ++i) {
      const int64_t index = i * size() / std::min(kLookedAt, size());
      SampleContent content;
      const std::string cause = read(index, buffer, content);
      if (!cause.empty()) {
        throw core::Error(core::ErrorKind::data, core::format("{}: {}", core::printable(name(index)), cause),
                          "get the file again, or write it again");
      }
      hasher.add(content.bytes, content.size);
    }
    return hasher.hex();
  }

  const Hdf5Samples samples_;
  std::vector<int64_t> ends_;  ///< end of the samples of each file
};

}  // namespace

std::shared_ptr<const Source> make_hdf5_source(Hdf5Samples samples, std::vector<std::string> class_names,
                                               std::vector<std::string> target_names) {
  return std::make_shared<Hdf5Source>(std::move(samples), std::move(class_names), std::move(target_names));
}

// <data_dir>/<split>.h5 or several files of a split, or files with a group per split: samples and labels are data
// sets of a file. Labels are numbers of classes, or what the task learns.

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
  if (split != options_.train_split || !has_no_val_split(options_)) return {};
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
  if (config::is_numeric_task(options_.task)) {
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
    if (!config::is_numeric_task(options_.task)) {
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
                   "if the data has more classes, set --num-classes");
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
