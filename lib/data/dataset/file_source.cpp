// SPDX-License-Identifier: Apache-2.0
#include "data/dataset/file_source.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>

#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"
#include "data/bands/band_source.h"
#include "data/source.h"
#include "data/video/video_source.h"

namespace stoker::data {
namespace {

class FileSource : public LeafSource, private StoredSamples {
 public:
  FileSource(FileList files, std::vector<std::string> class_names, std::vector<std::string> target_names)
      : files_(std::move(files)) {
    class_names_ = std::move(class_names);
    target_names_ = std::move(target_names);
    files_.shrink_to_fit();
    ListFingerprint fingerprint(class_names_);
    for (int64_t i = 0; i < files_.size(); ++i) {
      fingerprint.add_sample(files_.relative_path(i), files_.stamp(i).size, files_.label(i));
    }
    if (num_targets() > 0) fingerprint.add_targets(target_names_, files_.targets(0), files_.size() * num_targets());
    for (int64_t i = 0; files_.has_regions() && i < files_.size(); ++i) {
      const RegionOfInterest region = files_.region(i);
      fingerprint.add_text(core::format("{} {} {} {}", region.left, region.top, region.width, region.height));
    }
    for (int64_t i = 0; files_.has_parts() && i < files_.size(); ++i) {
      if (const SoundPart part = files_.part(i); !part.is_whole()) fingerprint.add_text(part_text(part));
    }
    fingerprint_ = fingerprint.hex();
  }

  int64_t size() const override { return files_.size(); }
  int64_t label(int64_t index) const override { return files_.label(index); }
  void targets(int64_t index, float* out) const override {
    std::copy_n(files_.targets(index), files_.num_targets(), out);
  }
  RegionOfInterest region(int64_t index) const override { return files_.region(index); }
  std::string name(int64_t index) const override { return files_.path(index) + part_text(files_.part(index)); }
  std::string relative_name(int64_t index) const override {
    return std::string(files_.relative_path(index)) + part_text(files_.part(index));
  }
  SoundPlace place(int64_t index) const { return files_.place(index); }
  SourceMemory memory() const override { return {files_.memory_bytes(), 0}; }
  const StoredSamples* stored() const override { return this; }

  std::string read(int64_t index, std::vector<uint8_t>& buffer, SampleContent& content) const override {
    return read_head(index, std::numeric_limits<int64_t>::max(), buffer, content);
  }

  std::string read_head(int64_t index, int64_t bytes, std::vector<uint8_t>& buffer,
                        SampleContent& content) const override {
    const FileStamp stamp = files_.stamp(index);
    std::string cause = files_.read(index, bytes, buffer);
    if (!cause.empty()) return cause;
    content.bytes = buffer.data();
    content.size = static_cast<uint64_t>(std::min(stamp.size, bytes));
    return "";
  }

  int64_t stored_bytes(int64_t index) const override { return files_.stamp(index).size; }

  std::vector<int64_t> run_ends() const override { return {size()}; }

 private:
  FileList files_;
};

}  // namespace

void FileList::add(std::string_view path, int64_t label, const FileStamp& stamp) {
  entries_.push_back(
      {paths_.size(), stamp.size, stamp.modified_ns, static_cast<uint32_t>(path.size()), static_cast<int32_t>(label)});
  paths_.append(path);
}

void FileList::add(std::string_view path, const std::vector<float>& targets, const FileStamp& stamp) {
  constexpr int64_t kNoLabel = -1;
  add(path, kNoLabel, stamp);
  targets_.insert(targets_.end(), targets.begin(), targets.end());
}

void FileList::add(std::string_view path, const std::vector<float>& targets, const FileStamp& stamp,
                   const RegionOfInterest& region) {
  add(path, targets, stamp);
  regions_.push_back(region);
}

FileStamp FileList::stamp(int64_t index) const {
  const Entry& entry = entries_[static_cast<size_t>(index)];
  return {entry.size, entry.modified_ns};
}

std::string_view FileList::relative_path(int64_t index) const {
  const Entry& entry = entries_[static_cast<size_t>(index)];
  return std::string_view(paths_).substr(entry.path_at, entry.path_length);
}

std::string FileList::absolute(std::string_view relative_path) const {
  if (directory_.empty() || relative_path.substr(0, 1) == "/") return std::string(relative_path);
  std::string whole = directory_;
  if (whole.back() != '/') whole += '/';
  return whole.append(relative_path);
}

void FileList::shrink_to_fit() {
  paths_.shrink_to_fit();
  entries_.shrink_to_fit();
  targets_.shrink_to_fit();
}

void FileList::stage(const std::string& stage_dir, ScanNotes& notes) {
  if (stage_dir.empty() || entries_.empty()) return;
  std::string note;
  copies_ = StagedFiles::stage({directory_, size(), [this](int64_t i) { return relative_path(i); },
                                [this](int64_t i) { return path(i); }, [this](int64_t i) { return stamp(i); }},
                               stage_dir, note);
  notes.add_line(note);
}

std::string FileList::read(int64_t index, int64_t max_bytes, std::vector<uint8_t>& buffer) const {
  const bool has_copy =
      copies_ != nullptr &&
      read_sample_file(copies_->copy_of(relative_path(index)), stamp(index), buffer, max_bytes).empty();
  return has_copy ? "" : read_sample_file(path(index), stamp(index), buffer, max_bytes);
}

std::string key_of(const FileList& files, int64_t index) {
  return normalized_path(std::string(files.relative_path(index))) + part_text(files.part(index));
}

SoundPlace FileList::place(int64_t index) const {
  return {path(index), copies_ == nullptr ? "" : copies_->copy_of(relative_path(index)), stamp(index), part(index)};
}

namespace {

std::shared_ptr<const Source> as_videos(const std::shared_ptr<const FileSource>& files,
                                        const config::DataOptions& options, int64_t views) {
  const auto place_of = [files](int64_t index) {
    SoundPlace place = files->place(index);
    return VideoPlace{std::move(place.path), std::move(place.copy), place.stamp};
  };
  return make_video_source(files, place_of, options, views);
}

/// Images, samples of many bands, sounds or videos, by what most are called.
std::shared_ptr<const Source> as_samples(FileList list, std::vector<std::string> class_names,
                                         std::vector<std::string> target_names, const config::DataOptions& options) {
  const auto name = [&](int64_t i) { return list.relative_path(i); };
  const bool sounds = most_are_called(has_sound_name, list.size(), name);
  const bool videos = most_are_called(has_video_name, list.size(), name);
  auto files = std::make_shared<const FileSource>(std::move(list), std::move(class_names), std::move(target_names));
  if (videos) return as_videos(files, options, /*views=*/1);
  if (!sounds) return as_bands(std::move(files));
  return make_sound_source(
      files, [files](int64_t index) { return files->place(index); }, options.sound);
}

}  // namespace

std::shared_ptr<const Source> make_file_source(FileList files, std::vector<std::string> class_names,
                                               const config::DataOptions& options) {
  return as_samples(std::move(files), std::move(class_names), {}, options);
}

std::shared_ptr<const Source> make_videos_of_files(FileList files, std::vector<std::string> class_names,
                                                   const config::DataOptions& options, int64_t views) {
  return as_videos(
      std::make_shared<const FileSource>(std::move(files), std::move(class_names), std::vector<std::string>()), options,
      views);
}

std::shared_ptr<const Source> make_frame_source(FileList files, std::vector<std::string> class_names) {
  return std::make_shared<FileSource>(std::move(files), std::move(class_names), std::vector<std::string>());
}

std::shared_ptr<const Source> make_target_source(FileList files, std::vector<std::string> target_names,
                                                 const config::DataOptions& options) {
  return as_samples(std::move(files), {}, std::move(target_names), options);
}

namespace {

/// Samples of another source, at rising indices.
class SubsetSource : public ForwardingSource {
 public:
  SubsetSource(std::shared_ptr<const Source> whole, std::vector<uint32_t> indices)
      : ForwardingSource(std::move(whole)), indices_(std::move(indices)) {
    core::Hasher hasher;
    hasher.add("subset of " + behind().fingerprint());
    hasher.add(indices_.data(), indices_.size() * sizeof(uint32_t));
    fingerprint_ = hasher.hex();
  }

  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  /// The list of the whole is held only once, by both parts of a split: each has its share. A cache serves both.
  SourceMemory memory() const override {
    SourceMemory memory = behind().memory();
    memory.list_bytes = static_cast<int64_t>(indices_.size() * sizeof(uint32_t)) +
                        (size() == 0 ? 0 : memory.list_bytes * size() / behind().size());
    return memory;
  }

 private:
  int64_t index_behind(int64_t index) const override { return indices_[static_cast<size_t>(index)]; }
  std::vector<int64_t> run_ends() const override {
    std::vector<int64_t> ends = ForwardingSource::run_ends();
    for (int64_t& end : ends) end = std::lower_bound(indices_.begin(), indices_.end(), end) - indices_.begin();
    return ends;
  }

  std::vector<uint32_t> indices_;
};

}  // namespace

std::optional<Fold> fold_of(const config::DataOptions& options) {
  constexpr int64_t kMostFolds = 1000;
  if (!options.val_split || options.val_split->rfind("fold:", 0) != 0) return std::nullopt;
  int number = 0, of = 0;
  char rest = 0;
  const int read = std::sscanf(options.val_split->c_str(), "fold:%9d/%9d%c", &number, &of, &rest);
  if (read == 2 && number >= 1 && of >= 2 && number <= of && of <= kMostFolds) return Fold{number, of};
  throw core::Error(core::ErrorKind::config,
                    core::format("--val-split {} is no fold", core::printable(*options.val_split)),
                    "fold:2/5 validates on the second of five parts of the training split");
}

bool holds_out(const config::DataOptions& options) {
  return options.val_split ? fold_of(options).has_value() : options.val_fraction > 0;
}

bool has_no_val_split(const config::DataOptions& options) {
  return holds_out(options) || options.val_split == config::kNoValidation;
}

std::pair<std::shared_ptr<const Source>, std::shared_ptr<const Source>> hold_out(
    const std::shared_ptr<const Source>& whole, double fraction) {
  std::vector<uint32_t> kept, held;
  for (int64_t i = 0; i < whole->size(); ++i) {
    const double position = static_cast<double>(core::hash64(whole->relative_name(i)) >> 11) * 0x1.0p-53;
    (position < fraction ? held : kept).push_back(static_cast<uint32_t>(i));
  }
  return {std::make_shared<SubsetSource>(whole, std::move(kept)),
          std::make_shared<SubsetSource>(whole, std::move(held))};
}

namespace {

int64_t label_at(const Source& source, int64_t index) { return source.label(index); }

/// The position of a sample's class; 0 where there are none.
int64_t class_at(const Source& source, int64_t index) {
  return source.num_targets() > 0 ? 0 : std::max<int64_t>(0, source.label(index));
}

/// Samples of each class, those with the lowest hashes of `prefix` and their names first.
std::map<int64_t, std::vector<std::pair<uint64_t, uint32_t>>> classes_by_hash(
    const Source& whole, int64_t (*class_of)(const Source&, int64_t), const std::string& prefix = "") {
  std::map<int64_t, std::vector<std::pair<uint64_t, uint32_t>>> classes;  // hash and index
  for (int64_t i = 0; i < whole.size(); ++i) {
    classes[class_of(whole, i)].emplace_back(core::hash64(prefix + whole.relative_name(i)), static_cast<uint32_t>(i));
  }
  for (auto& entry : classes) std::sort(entry.second.begin(), entry.second.end());
  return classes;
}

std::pair<std::shared_ptr<const Source>, std::shared_ptr<const Source>> parts_of(
    const std::shared_ptr<const Source>& whole, std::vector<uint32_t> kept, std::vector<uint32_t> held) {
  std::sort(kept.begin(), kept.end());
  std::sort(held.begin(), held.end());
  return {std::make_shared<SubsetSource>(whole, std::move(kept)),
          std::make_shared<SubsetSource>(whole, std::move(held))};
}

}  // namespace

std::pair<std::shared_ptr<const Source>, std::shared_ptr<const Source>> hold_out_stratified(
    const std::shared_ptr<const Source>& whole, double fraction) {
  const auto classes = classes_by_hash(*whole, label_at);
  if (classes.size() < 2) return hold_out(whole, fraction);
  std::vector<uint32_t> kept, held;
  for (const auto& [label, samples] : classes) {
    const auto count = static_cast<int64_t>(samples.size());
    const int64_t wanted = std::llround(fraction * static_cast<double>(count));
    const int64_t taken = count < 2 ? 0 : std::clamp<int64_t>(wanted, 1, count - 1);
    for (int64_t i = 0; i < count; ++i) (i < taken ? held : kept).push_back(samples[static_cast<size_t>(i)].second);
  }
  return parts_of(whole, std::move(kept), std::move(held));
}

std::pair<std::shared_ptr<const Source>, std::shared_ptr<const Source>> hold_out_fold(
    const std::shared_ptr<const Source>& whole, int64_t fold, int64_t count) {
  std::vector<uint32_t> kept, held;
  int64_t next = 0;  // of all classes, so that the folds are equally large, too
  for (const auto& [label, samples] : classes_by_hash(*whole, label_at)) {
    for (const auto& [hash, index] : samples) (next++ % count == fold ? held : kept).push_back(index);
  }
  return parts_of(whole, std::move(kept), std::move(held));
}

namespace {

/// Samples that stay together, by the position of each class that they have; the last position stands for all samples.
struct SampleGroup {
  uint64_t hash = 0;
  std::vector<uint32_t> samples;
  std::map<size_t, double> counts;
};

/// Which groups are held out, and how many samples of each class.
class GroupedSplit {
 public:
  GroupedSplit(std::vector<SampleGroup> groups, size_t classes, double fraction)
      : groups_(std::move(groups)),
        fraction_(fraction),
        is_held_(groups_.size()),
        all_(classes + 1),
        held_(classes + 1),
        groups_with_(classes + 1) {
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (const auto& [k, count] : groups_[g].counts) {
        all_[k] += count;
        groups_with_[k].push_back(g);
      }
    }
  }

  void choose() {
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (cost_of(g) < 0 && leaves_some(g)) hold(g);
    }
    for (size_t k = 0; k < held_.size(); ++k) {
      if (held_[k] == 0 && groups_with_[k].size() > 1) hold_cheapest(k, /*leaves_some_of_all=*/true);
    }
    if (held_.back() == 0 && groups_.size() > 1) hold_cheapest(held_.size() - 1, /*leaves_some_of_all=*/false);
  }

  /// (kept, held out)
  std::pair<std::vector<uint32_t>, std::vector<uint32_t>> sides() const {
    std::vector<uint32_t> kept, held;
    for (size_t g = 0; g < groups_.size(); ++g) {
      std::vector<uint32_t>& side = is_held_[g] ? held : kept;
      side.insert(side.end(), groups_[g].samples.begin(), groups_[g].samples.end());
    }
    return {std::move(kept), std::move(held)};
  }

 private:
  /// The amount that holding a group out adds to the squared distances of classes from the shares that are wanted.
  double cost_of(size_t g) const {
    double cost = 0;
    for (const auto& [k, count] : groups_[g].counts) {
      if (k + 1 == all_.size()) continue;  // or one class would stand in for another
      const double lacking = fraction_ * all_[k] - held_[k];
      cost += count * (count - 2 * lacking) / all_[k];
    }
    return cost;
  }

  bool leaves_some(size_t g) const {
    return std::all_of(groups_[g].counts.begin(), groups_[g].counts.end(),
                       [&](const auto& of) { return all_[of.first] - held_[of.first] > of.second; });
  }

  void hold(size_t g) {
    is_held_[g] = true;
    for (const auto& [k, count] : groups_[g].counts) held_[k] += count;
  }

  void hold_cheapest(size_t k, bool leaves_some_of_all) {
    size_t best = groups_.size();
    for (const size_t g : groups_with_[k]) {
      if (is_held_[g] || (leaves_some_of_all && !leaves_some(g))) continue;
      if (best == groups_.size() || cost_of(g) < cost_of(best)) best = g;
    }
    if (best < groups_.size()) hold(best);
  }

  const std::vector<SampleGroup> groups_;
  const double fraction_;
  std::vector<bool> is_held_;
  std::vector<double> all_, held_;
  std::vector<std::vector<size_t>> groups_with_;  ///< by class
};

}  // namespace

namespace {

size_t classes_of(const Source& whole) { return static_cast<size_t>(std::max<int64_t>(1, whole.num_classes())); }

/// By hash.
std::vector<SampleGroup> groups_in_order(const Source& whole, const std::vector<std::string>& groups) {
  const size_t classes = classes_of(whole);
  std::map<std::pair<bool, std::string>, SampleGroup> by_name;  // those without a name by that of the sample
  for (int64_t i = 0; i < whole.size(); ++i) {
    const std::string& name = groups[static_cast<size_t>(i)];
    const bool is_alone = name.empty();
    SampleGroup& group = by_name[{is_alone, is_alone ? whole.relative_name(i) : name}];
    group.samples.push_back(static_cast<uint32_t>(i));
    ++group.counts[static_cast<size_t>(class_at(whole, i))];
    ++group.counts[classes];
  }
  std::vector<SampleGroup> in_order;
  for (auto& [name, group] : by_name) {
    group.hash = core::hash64(name.second);
    in_order.push_back(std::move(group));
  }
  std::stable_sort(in_order.begin(), in_order.end(),
                   [](const SampleGroup& a, const SampleGroup& b) { return a.hash < b.hash; });
  return in_order;
}

}  // namespace

std::pair<std::shared_ptr<const Source>, std::shared_ptr<const Source>> hold_out_fold_of_groups(
    const std::shared_ptr<const Source>& whole, const std::vector<std::string>& groups, int64_t fold, int64_t count) {
  const size_t classes = classes_of(*whole);
  std::vector<SampleGroup> in_order = groups_in_order(*whole, groups);
  std::stable_sort(in_order.begin(), in_order.end(),
                   [](const SampleGroup& a, const SampleGroup& b) { return a.samples.size() > b.samples.size(); });
  std::vector<double> all(classes + 1);
  for (const SampleGroup& group : in_order) {
    for (const auto& [k, samples] : group.counts) all[k] += samples;
  }
  std::vector<std::vector<double>> folds(static_cast<size_t>(count), std::vector<double>(classes + 1));
  std::vector<uint32_t> kept, held;
  for (const SampleGroup& group : in_order) {
    // The squared distances of the folds' shares of each class from equal ones grow least; else the smallest fold.
    const auto cost_of = [&](const std::vector<double>& of) {
      double cost = 0;
      for (const auto& [k, samples] : group.counts) {
        if (k < classes) cost += samples * (samples + 2 * of[k]) / (all[k] * all[k]);
      }
      return std::pair(cost, of[classes]);
    };
    const auto best = std::min_element(folds.begin(), folds.end(),
                                       [&](const auto& a, const auto& b) { return cost_of(a) < cost_of(b); });
    for (const auto& [k, samples] : group.counts) (*best)[k] += samples;
    std::vector<uint32_t>& side = best - folds.begin() == fold ? held : kept;
    side.insert(side.end(), group.samples.begin(), group.samples.end());
  }
  return parts_of(whole, std::move(kept), std::move(held));
}

std::pair<std::shared_ptr<const Source>, std::shared_ptr<const Source>> hold_out_groups(
    const std::shared_ptr<const Source>& whole, const std::vector<std::string>& groups, double fraction) {
  GroupedSplit split(groups_in_order(*whole, groups), classes_of(*whole), fraction);
  split.choose();
  auto [kept, held] = split.sides();
  return parts_of(whole, std::move(kept), std::move(held));
}

std::shared_ptr<const Source> part_of_each_class(const std::shared_ptr<const Source>& whole, double fraction) {
  if (fraction == 1) return whole;
  std::vector<uint32_t> kept;
  for (const auto& [label, samples] :
       classes_by_hash(*whole, class_at, "fraction ")) {  // another hash than the split's
    const auto count = static_cast<int64_t>(samples.size());
    const double wanted = fraction < 1 ? std::round(fraction * static_cast<double>(count)) : fraction;
    const auto taken = static_cast<int64_t>(std::clamp(wanted, 1.0, static_cast<double>(count)));
    for (int64_t i = 0; i < taken; ++i) kept.push_back(samples[static_cast<size_t>(i)].second);
  }
  if (static_cast<int64_t>(kept.size()) == whole->size()) return whole;
  std::sort(kept.begin(), kept.end());
  return std::make_shared<SubsetSource>(whole, std::move(kept));
}

std::shared_ptr<const Source> evenly_spaced(const std::shared_ptr<const Source>& whole, int64_t most) {
  if (whole->size() <= most) return whole;
  std::vector<uint32_t> kept;
  for (int64_t i = 0; i < most; ++i) kept.push_back(static_cast<uint32_t>(i * whole->size() / most));
  return std::make_shared<SubsetSource>(whole, std::move(kept));
}

}  // namespace stoker::data
