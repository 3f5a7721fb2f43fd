// SPDX-License-Identifier: Apache-2.0
#include "data/open_datasets.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <tuple>
#include <utility>

#include "config/table/parse_value.h"
#include "config/task_facts.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/machine.h"
#include "core/time/clock.h"
#include "data/audit/audit.h"
#include "data/dataset/held_out.h"
#include "data/layout.h"

namespace stoker::data {
namespace {

constexpr char kHeldOut[] = "val";  // what the held-out part is called when a split is requested by name

/// A layout of classes cannot serve a task that learns numbers.
void require_what_task_learns(const Source& source, const config::DataOptions& options) {
  if (!config::is_numeric_task(options.task) || source.num_targets() > 0) return;
  throw core::Error(core::ErrorKind::data,
                    core::format("task {} learns numbers, but {} holds classes", config::task_name(options.task),
                                 core::printable(options.data_dir)),
                    core::format("write {0}.csv and val.csv with the column path and a column per target (head-pose: "
                                 "yaw,pitch,roll; multilabel: 0 or 1), or choose another --task",
                                 options.train_split));
}

void refuse_videos(const Source& source, const config::DataOptions& options) {
  if (!holds_videos(source)) return;
  throw core::Error(
      core::ErrorKind::config,
      core::format("shards hold single images, but {} holds videos", core::printable(options.data_dir)),
      "train on the videos themselves; of folders of frames --dataset folder packs every frame as an image of its own");
}

void refuse_numbers(const Source& source, const config::DataOptions& options) {
  if (source.fixed_shape().height == 0 || source.excerpts() != nullptr) return;
  throw core::Error(
      core::ErrorKind::config,
      core::format("shards hold images, but {} holds numbers of a fixed size", core::printable(options.data_dir)),
      "train on the files themselves: every sample is one read there as well");
}

/// Every report and every checkpoint writes the names of classes as UTF-8.
void require_names_as_text(const Source& source) {
  for (const std::string& name : source.learned_names()) {
    if (config::is_utf8(name)) continue;
    throw core::Error(
        core::ErrorKind::data,
        core::format("the class name '{}' is no UTF-8: no checkpoint or report can hold it", core::printable(name)),
        "rename the folder, or write the list in UTF-8: convmv -f latin1 -t utf8 -r --notest DIR, iconv -f latin1 -t "
        "utf8");
  }
}

[[noreturn]] void on_missing_split(const Layout& layout, const config::DataOptions& options, const std::string& split) {
  throw layout_error(core::ErrorKind::no_input,
                     core::format("{} has no split '{}'", core::printable(options.data_dir), core::printable(split)),
                     options, layout.found_text());
}

std::shared_ptr<const Source> open_train(const Layout& layout, const config::DataOptions& options,
                                         std::vector<std::string>& notes) {
  if (!layout.has_split(options.train_split)) on_missing_split(layout, options, options.train_split);
  auto train = layout.open(options.train_split, layout.class_names(options.train_split), /*is_train=*/true, notes);
  require_images(*train, options.train_split);
  require_what_task_learns(*train, options);
  require_names_as_text(*train);
  return train;
}

/// The first usual name that exists. Throws no_input.
std::string found_val_split(const Layout& layout, const config::DataOptions& options) {
  for (const char* const name : kValSplits) {
    if (name != options.train_split && layout.has_split(name)) return name;
  }
  throw core::Error(core::ErrorKind::no_input,
                    core::format("{} has no validation split: none of {} exists", core::printable(options.data_dir),
                                 core::list_text({std::begin(kValSplits), std::end(kValSplits)})),
                    "name one with --val-split, hold a part of the training images out with --val-fraction 0.1, or "
                    "train without validation with --val-split none" +
                        layout.found_text());
}

/// Classes of which there is no sample; 0 where there are no classes.
int64_t classes_without(const Source& source) {
  if (source.num_targets() > 0 || source.num_classes() < 2) return 0;
  std::set<int64_t> seen;
  for (int64_t i = 0; i < source.size(); ++i) seen.insert(source.label(i));
  return source.num_classes() - static_cast<int64_t>(seen.size());
}

/// Names the classes without a training image: labels from 1 on, or with gaps.
void note_empty_classes(const Source& train, std::vector<std::string>& notes) {
  const int64_t unseen = classes_without(train);
  if (unseen == 0) return;
  std::vector<bool> seen(static_cast<size_t>(train.num_classes()));
  for (int64_t i = 0; i < train.size(); ++i) seen[static_cast<size_t>(train.label(i))] = true;
  const auto first = static_cast<size_t>(std::find(seen.begin(), seen.end(), false) - seen.begin());
  notes.push_back(core::format("classes without training images: {} of {} (the first: {})", unseen, train.num_classes(),
                               core::printable(train.class_names()[first])));
}

/// Names the first two classes that differ in capitals or blanks alone.
void note_like_classes(const Source& train, std::vector<std::string>& notes) {
  std::map<std::string, std::string> seen;
  for (const std::string& name : train.class_names()) {
    std::string key = core::lower_case(name);
    key.erase(std::remove_if(key.begin(), key.end(), [](char c) { return c == ' ' || c == '_' || c == '-'; }),
              key.end());
    const auto [first, is_new] = seen.emplace(key, name);
    if (is_new) continue;
    notes.push_back(core::format("classes '{}' and '{}' differ in capitals or blanks alone: are they one?",
                                 core::printable(first->second), core::printable(name)));
    return;
  }
}

/// Every group of copies gets the name of its first sample. Reads all samples.
std::vector<std::string> near_duplicates(const std::shared_ptr<const Source>& train,
                                         const config::DataOptions& options) {
  AuditSettings settings;
  settings.limits.max_megapixels = options.max_image_megapixels;
  settings.threads = std::max(1, core::read_machine_facts().cpus);
  core::log_info("looking for near duplicates among {} images", core::count_text(train->size()));
  std::vector<std::string> names(static_cast<size_t>(train->size()));
  for (const DuplicateGroup& group : audit({{options.train_split, train}}, settings).groups) {
    for (const SampleAt& member : group.members) {
      names[static_cast<size_t>(member.index)] = train->relative_name(group.members.front().index);
    }
  }
  return names;
}

/// The match of a pattern in each name, or of its first parentheses.
std::vector<std::string> matches_of(const std::string& pattern, const Source& train) {
  std::vector<std::string> names;
  try {
    const std::regex expression(pattern);
    for (int64_t i = 0; i < train.size(); ++i) {
      const std::string name = train.relative_name(i);
      std::smatch match;
      const bool is_found = std::regex_search(name, match, expression);
      names.push_back(!is_found ? "" : match[expression.mark_count() > 0 ? 1 : 0].str());
    }
  } catch (const std::regex_error& error) {
    throw core::Error(core::ErrorKind::config,
                      core::format("--group {} is no regular expression: {}", core::printable(pattern), error.what()),
                      "name a column of the list of images, or write a pattern such as 'patient_([0-9]+)'");
  }
  return names;
}

/// Rows of one image join the groups that they name.
std::vector<std::string> values_of(const ColumnValues& rows, const Source& train) {
  std::map<std::string, std::string> by_path, joined;  // joined: another name of a group
  const auto name_of = [&](std::string name) {
    for (auto found = joined.find(name); found != joined.end(); found = joined.find(name)) name = found->second;
    return name;
  };
  for (const auto& [path, value] : rows) {
    if (value.empty()) continue;
    const auto [before, is_new] = by_path.emplace(path, value);
    const std::string first = name_of(before->second), other = name_of(value);
    if (!is_new && first != other) joined[std::max(first, other)] = std::min(first, other);
  }
  std::vector<std::string> names;
  for (int64_t i = 0; i < train.size(); ++i) {
    const auto found = by_path.find(train.relative_name(i));
    names.push_back(found == by_path.end() ? "" : name_of(found->second));
  }
  return names;
}

/// The group of each sample; "": it is alone.
std::vector<std::string> group_names(const Layout& layout, const std::shared_ptr<const Source>& train,
                                     const config::DataOptions& options) {
  if (options.group == config::kNearDuplicates) return near_duplicates(train, options);
  const ColumnValues rows = layout.column(options.train_split, options.group);
  const std::vector<std::string> names = rows.empty() ? matches_of(options.group, *train) : values_of(rows, *train);
  if (std::any_of(names.begin(), names.end(), [](const std::string& name) { return !name.empty(); })) return names;
  throw core::Error(
      core::ErrorKind::config,
      core::format(
          "--group {} {}", core::printable(options.group),
          rows.empty() ? "matches the path of no image, and no column of a list is called so" : "is an empty column"),
      core::format("a path is {}; write a column of the CSV list, or a pattern such as 'patient_([0-9]+)'",
                   core::printable(train->relative_name(0))));
}

/// "; 40 groups (patient) are whole, 3 images have none"
std::string groups_text(const std::vector<std::string>& names, const std::string& by) {
  const std::set<std::string> groups(names.begin(), names.end());
  const auto alone = std::count(names.begin(), names.end(), "");
  return core::format(
      ", {} ({}) on one side each{}", core::counted(static_cast<int64_t>(groups.size()) - (alone > 0 ? 1 : 0), "group"),
      core::printable(by), alone == 0 ? "" : core::format("; {} are in none", core::counted(alone, "image")));
}

/// (kept, held out); `note`: how groups were kept together.
std::pair<std::shared_ptr<const Source>, std::shared_ptr<const Source>> split_off(
    const Layout& layout, const std::shared_ptr<const Source>& train, const config::DataOptions& options,
    std::string& note) {
  const std::optional<Fold> fold = fold_of(options);
  if (options.group != config::kNoGroups) {
    const std::vector<std::string> names = group_names(layout, train, options);
    note = groups_text(names, options.group);
    return fold ? hold_out_fold_of_groups(train, names, fold->number - 1, fold->of)
                : hold_out_groups(train, names, options.val_fraction);
  }
  const bool has_classes = train->num_targets() == 0, stratifies = options.stratify && has_classes;
  if (has_classes && (stratifies || fold)) note = ", the same share of each class";
  if (options.stratify && !has_classes) note = "; --stratify has no effect: it is for one class per image";
  if (fold) return hold_out_fold(train, fold->number - 1, fold->of);
  return stratifies ? hold_out_stratified(train, options.val_fraction) : hold_out(train, options.val_fraction);
}

void hold_out_val(const Layout& layout, const config::DataOptions& options, Datasets& datasets) {
  const int64_t whole = datasets.train->size();
  std::string note;
  std::tie(datasets.train, datasets.val) = split_off(layout, datasets.train, options, note);
  if (datasets.train->size() == 0 || datasets.val->size() == 0) {
    throw core::Error(core::ErrorKind::data,
                      core::format("{} of {} images leaves {} to train and {} to validate",
                                   options.val_split ? "--val-split " + *options.val_split
                                                     : core::format("--val-fraction {}", options.val_fraction),
                                   whole, datasets.train->size(), datasets.val->size()),
                      options.group == config::kNoGroups ? "use more images or another fraction"
                                                         : "use more groups: each stays on one side");
  }
  datasets.notes.push_back(core::format("validation: {} of {} images held out by a hash of their names{}",
                                        core::count_text(datasets.val->size()), core::count_text(whole), note));
  const int64_t unseen = options.val_split ? 0 : classes_without(*datasets.val);
  if (unseen > 0) {
    datasets.notes.push_back(
        core::format("{} of {} classes have no validation image{}", unseen, datasets.val->num_classes(),
                     options.group == config::kNoGroups ? ": --stratify holds out some of each" : ""));
  }
}

std::string clips_note(const config::DataOptions& options) {
  const std::string frames = core::count_text(options.clip_frames);
  if (options.frame_sampling == config::FrameSampling::uniform) {
    return options.clip_frames == 1 ? "videos: the frame in the middle of each"
                                    : core::format("videos: clips of {} frames, spread over each", frames);
  }
  return options.clip_frames == 1 ? "videos: a frame of each, drawn at random in training"
                                  : core::format("videos: clips of {} frames, {} apart, from anywhere in training",
                                                 frames, options.frame_stride);
}

std::string sounds_note(const config::SoundOptions& sound) {
  return core::format("sounds: {} s of each as a log-mel spectrogram of {} x {}, {} Hz, windows of {} every {} samples",
                      sound.seconds, sound.mels, sound.frames(), sound.sample_rate, sound.n_fft, sound.hop_length());
}

void require_same_views(const Source& train, const Source& val) {
  if (train.fixed_shape().views == val.fixed_shape().views) return;
  const bool train_has = train.fixed_shape().views > 1;
  throw core::Error(core::ErrorKind::data,
                    core::format("{} videos are pairs of high and low quality, {} ones are not",
                                 train_has ? "training" : "validation", train_has ? "validation" : "training"),
                    "give all videos the folders hq and lq, or none");
}

Datasets scanned_datasets(const config::DataOptions& options) {
  const std::unique_ptr<Layout> layout = detect_layout(options);
  Datasets datasets;
  datasets.type = layout->type;
  if (!layout->note.empty()) datasets.notes.push_back(layout->note);
  datasets.train = open_train(*layout, options, datasets.notes);
  note_empty_classes(*datasets.train, datasets.notes);
  note_like_classes(*datasets.train, datasets.notes);
  if (holds_videos(*datasets.train)) {
    const bool pairs = datasets.train->fixed_shape().views > 1;
    datasets.notes.push_back(clips_note(options) +
                             (pairs ? "; each frame in high and in low quality, from the folders hq and lq" : ""));
  }
  if (datasets.train->excerpts() != nullptr) datasets.notes.push_back(sounds_note(options.sound));
  if (holds_out(options)) {
    hold_out_val(*layout, options, datasets);
    return datasets;
  }
  if (options.val_split == config::kNoValidation) {
    datasets.has_validation = false;
    datasets.val = evenly_spaced(datasets.train, 1);
    datasets.notes.push_back(
        "validation: none (--val-split none): no checkpoint is the best, and how well the network does on images that "
        "it was not trained on is not known");
    return datasets;
  }
  const bool chosen = !options.val_split;
  const std::string val = chosen ? found_val_split(*layout, options) : *options.val_split;
  if (!layout->has_split(val)) on_missing_split(*layout, options, val);
  try {
    datasets.val = layout->open(val, datasets.train->learned_names(), /*is_train=*/false, datasets.notes);
    require_images(*datasets.val, val);
  } catch (const core::Error& error) {
    if (!chosen || error.kind() != core::ErrorKind::data) throw;
    throw core::Error(
        error.kind(), error.what(),
        core::format("{}{}'{}' was taken for validation by its name: where it has no labels, --val-fraction "
                     "0.1 holds a part of the training images out instead",
                     error.hint(), error.hint().empty() ? "" : "\n", core::printable(val)));
  }
  require_same_views(*datasets.train, *datasets.val);
  if (chosen) datasets.notes.push_back(core::format("validation split: '{}' (found automatically)", val));
  if (chosen && val == "test") {
    core::log_warning(
        "the best checkpoint is chosen on split 'test', so its scores are not test results; --val-fraction 0.1 "
        "holds a part of the training images out instead");
  }
  if (!chosen && options.val_fraction > 0)
    datasets.notes.push_back("--val-fraction is not used: --val-split names a split");
  return datasets;
}

}  // namespace

Datasets open_datasets(const config::DataOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  Datasets datasets = scanned_datasets(options);
  if (const int64_t whole = datasets.train->size(); options.fraction != 1) {
    datasets.train = part_of_each_class(datasets.train, options.fraction);
    datasets.notes.push_back(core::format("training: {} of {} images by --fraction {}",
                                          core::count_text(datasets.train->size()), core::count_text(whole),
                                          config::number_text(options.fraction)));
  }
  const double seconds = core::seconds_since(begin);
  for (const Source* const source : {datasets.train.get(), datasets.val.get()}) {
    core::log_debug("scan: {} images, {:.1f} bytes of memory each", source->size(),
                    static_cast<double>(source->memory().list_bytes) / static_cast<double>(source->size()));
  }
  core::log_debug("scan: {:.3f} s", seconds);
  return datasets;
}

std::shared_ptr<const Source> open_split(const config::DataOptions& options, const std::string& split) {
  const std::unique_ptr<Layout> layout = detect_layout(options);
  std::vector<std::string> notes;
  if (holds_out(options) && (split == options.train_split || (split == kHeldOut && !layout->has_split(split)))) {
    std::string note;
    const auto [train, val] = split_off(*layout, open_train(*layout, options, notes), options, note);
    return split == options.train_split ? part_of_each_class(train, options.fraction) : val;
  }
  if (!layout->has_split(split)) on_missing_split(*layout, options, split);
  const bool has_train = layout->has_split(options.train_split);
  const std::vector<std::string> class_names = layout->class_names(has_train ? options.train_split : split);
  auto source = layout->open(split, class_names, /*is_train=*/false, notes);
  require_images(*source, split);
  return split == options.train_split ? part_of_each_class(source, options.fraction) : source;
}

namespace {

/// Where a missing validation split is the only obstacle, nothing needs one. Throws what was wrong with the data as
/// given.
std::unique_ptr<Layout> layout_without_validation(const config::DataOptions& options) {
  try {
    return detect_layout(options);
  } catch (const core::Error& error) {
    if (error.kind() != core::ErrorKind::no_input || options.val_split || options.val_fraction > 0) throw;
    config::DataOptions all = options;
    all.val_split = config::kNoValidation;
    try {
      return detect_layout(all);
    } catch (const core::Error&) {
      throw error;
    }
  }
}

}  // namespace

NamedSources open_whole_splits(const config::DataOptions& options, std::vector<std::string> names,
                               std::vector<std::string>& notes) {
  if (config::is_numeric_task(options.task)) {
    throw core::Error(
        core::ErrorKind::config,
        core::format("shards hold a class per image, but task {} learns numbers", config::task_name(options.task)),
        "train on the loose files");
  }
  const std::unique_ptr<Layout> layout = layout_without_validation(options);
  if (names.empty()) {
    names.push_back(options.train_split);
    for (const char* const name : kValSplits) {
      if (name != options.train_split && layout->has_split(name)) names.push_back(name);
    }
  }
  for (const std::string& name : names) {
    if (!layout->has_split(name)) on_missing_split(*layout, options, name);
  }
  const bool has_train = layout->has_split(options.train_split);
  const std::vector<std::string> class_names = layout->class_names(has_train ? options.train_split : names.front());
  NamedSources splits;
  for (const std::string& name : names) {
    splits.emplace_back(name, layout->open(name, class_names, name == options.train_split, notes));
    require_images(*splits.back().second, name);
    refuse_videos(*splits.back().second, options);
    refuse_numbers(*splits.back().second, options);
  }
  return splits;
}

NamedSources open_every_split(const config::DataOptions& options, std::vector<std::string>& notes) {
  const std::unique_ptr<Layout> layout = detect_layout(options);
  if (!layout->has_split(options.train_split)) on_missing_split(*layout, options, options.train_split);
  const std::vector<std::string> names = layout->class_names(options.train_split);
  auto train = layout->open(options.train_split, names, /*is_train=*/false, notes);
  require_images(*train, options.train_split);
  require_what_task_learns(*train, options);
  std::vector<std::string> others;
  if (options.val_split && options.val_split != config::kNoValidation && !holds_out(options)) {
    if (!layout->has_split(*options.val_split)) on_missing_split(*layout, options, *options.val_split);
    others.push_back(*options.val_split);
  }
  for (const char* const name : kValSplits) {
    if (name != options.train_split && name != options.val_split && layout->has_split(name)) others.push_back(name);
  }
  NamedSources splits = {{options.train_split, train}};
  if (holds_out(options)) {
    std::string note;
    const auto [kept, held_out] = split_off(*layout, train, options, note);
    splits = {{options.train_split, kept}, {core::format("{} (held out)", options.train_split), held_out}};
  } else if (others.empty()) {
    notes.push_back("there is no validation split: only the training images are compared with each other");
  }
  for (const std::string& name : others) {
    splits.emplace_back(name, layout->open(name, train->learned_names(), /*is_train=*/false, notes));
    require_images(*splits.back().second, name);
  }
  return splits;
}

}  // namespace stoker::data
