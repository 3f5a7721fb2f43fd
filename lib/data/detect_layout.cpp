// SPDX-License-Identifier: Apache-2.0
#include "data/layout.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "config/task_facts.h"
#include "core/error.h"
#include "core/format.h"
#include "core/system/file.h"
#include "core/text/address.h"
#include "data/dataset/class_folders.h"
#include "data/dataset/csv_manifest.h"
#include "data/dataset/hdf5_part.h"
#include "data/dataset/held_out.h"
#include "data/storage/tree_walk.h"

namespace stoker::data {
namespace {

constexpr size_t kMaxNamed = 5;

/// Whether data_dir is a list of images instead of a folder.
bool is_list_file(const config::DataOptions& options) {
  const bool may_be = options.dataset == config::DatasetType::automatic ||
                      options.dataset == config::DatasetType::csv || options.dataset == config::DatasetType::clips;
  return may_be && has_list_name(options.data_dir) && !is_directory(options.data_dir);
}

/// A list instead of class folders.
bool is_list_of_videos(const config::DataOptions& options) {
  if (is_list_file(options)) return true;
  return !is_directory(options.data_dir + "/" + options.train_split) &&
         !list_of_split(options.data_dir, options.train_split).empty();
}

bool is_numpy_file(const config::DataOptions& options) {
  const bool may_be =
      options.dataset == config::DatasetType::automatic || options.dataset == config::DatasetType::numpy;
  return may_be && core::ends_with(options.data_dir, ".npz") && !is_directory(options.data_dir);
}

std::unique_ptr<Layout> csv_layout(const config::DataOptions& options) {
  if (is_list_file(options)) return make_csv_file_layout(options);
  return config::is_numeric_task(options.task) ? make_csv_target_layout(options) : make_csv_layout(options);
}

std::vector<std::string> folders_in(const std::string& place) {
  std::vector<std::string> folders;
  for (const std::string& name : names_in(place)) {
    if (name[0] != '.' && !is_system_folder(name) && is_directory(place + "/" + name)) folders.push_back(name);
  }
  return folders;
}

bool has_class_folders(const config::DataOptions& options) {
  ScanNotes ignored;
  return !TreeWalker(options.follow_symlinks, ignored).folders_in(options.data_dir).empty();
}

/// The lists of a folder of which none is a split, as a sentence for a hint; empty: there is none.
std::string lists_text(const config::DataOptions& options) {
  std::vector<std::string> names;
  for (const std::string& name : names_in(options.data_dir)) {
    if (has_list_name(name) && !core::ends_with(name, ".txt")) names.push_back(name);
  }
  if (names.empty()) return "";
  const auto train = std::find_if(names.begin(), names.end(), [](const std::string& name) {
    return core::lower_case(name).find("train") != std::string::npos;
  });
  const std::string first = core::printable(train == names.end() ? names.front() : *train);
  if (names.size() > kMaxNamed) names.resize(kMaxNamed);
  return core::format("it holds {}: to train on one, --data-dir {}/{} with --val-fraction 0.1\n",
                      core::list_text(names), core::printable(options.data_dir), first);
}

void check_data_dir(const config::DataOptions& options) {
  if (is_directory(options.data_dir)) return;
  if (core::is_address(options.data_dir)) {
    throw core::Error(
        core::ErrorKind::no_input,
        core::format("{} is an address; data is read from this machine", core::printable(options.data_dir)),
        core::copy_first(options.data_dir) + "--data-dir FOLDER");
  }
  const bool is_there = core::file_exists(options.data_dir);
  if (is_there && (has_hdf5_name(options.data_dir) || is_list_file(options) || is_numpy_file(options))) {
    return;  // the file itself
  }
  const std::string kind = file_found_text(options.data_dir);
  if (is_there && !kind.empty()) {
    throw layout_error(core::ErrorKind::no_input,
                       core::format("the data folder {} is not a folder, it {}", core::printable(options.data_dir),
                                    kind.substr(0, kind.find(": "))),
                       options, kind.substr(kind.find(": ") + 2));
  }
  struct stat info {};
  const int problem = ::stat(options.data_dir.c_str(), &info) == 0 ? 0 : errno;
  const bool is_pattern = options.data_dir.find_first_of("*{") != std::string::npos;
  const bool is_name = !is_there && options.data_dir.find('/') == std::string::npos;
  std::string near = is_there ? "" : nearest_file(options.data_dir);
  if (!is_directory(near)) near.clear();
  throw layout_error(
      core::ErrorKind::no_input,
      core::format("the data folder {} {}", core::printable(options.data_dir),
                   is_there            ? "is not a folder"
                   : problem == ENOENT ? "does not exist"
                                       : core::format("cannot be looked at: {}", std::strerror(problem))),
      options,
      !near.empty() ? "did you mean --data-dir " + core::shell_word(near) + "?"
      : is_pattern  ? "name the folder itself: its files are found by their names"
      : is_name     ? "nothing is downloaded: name a folder on this machine"
                    : "");
}

/// The layout of class folders with images, or with videos.
std::unique_ptr<Layout> folder_layout(const config::DataOptions& options, bool has_videos) {
  const bool has_train = is_directory(options.data_dir + "/" + options.train_split);
  if (!has_train && has_class_folders(options) && !has_no_val_split(options)) {
    std::string found = found_text(options.data_dir) + lists_text(options);
    if (!found.empty()) found.insert(0, "\n").pop_back();  // its last line end
    const std::string near = core::nearest_name(options.train_split, folders_in(options.data_dir));
    throw layout_error(core::ErrorKind::no_input,
                       core::format("{} has folders, but none is called '{}'{}", core::printable(options.data_dir),
                                    core::printable(options.train_split), found),
                       options,
                       "if they are class folders, add --val-fraction 0.1 (or --val-split none, to train on all); if "
                       "one of them is the training split, name it with --train-split" +
                           (near.empty() ? "" : " (did you mean --train-split " + core::shell_word(near) + "?)"));
  }
  if (has_train && !has_videos && folders_in(options.data_dir + "/" + options.train_split).empty()) {
    throw layout_error(core::ErrorKind::data,
                       core::format("{}/{} holds 0 class folders; at least 2 classes are needed",
                                    core::printable(options.data_dir), core::printable(options.train_split)),
                       options, found_text(options.data_dir) + lists_text(options));
  }
  return has_videos ? make_clip_layout(options, /*root_is_train=*/!has_train)
                    : make_folder_layout(options, /*root_is_train=*/!has_train);
}

std::unique_ptr<Layout> as(config::DatasetType type, std::unique_ptr<Layout> layout) {
  layout->type = type;
  return layout;
}

/// Whether the training split is a folder of class folders, judged by their number.
bool has_train_classes(const config::DataOptions& options) {
  return folders_in(folder_of_classes(options.data_dir + "/" + options.train_split)).size() >= 2;
}

/// The layout that has the training split under its own name, class folders left out; null: nothing.
std::unique_ptr<Layout> layout_by_name(const config::DataOptions& options) {
  using Type = config::DatasetType;
  auto idx = make_idx_layout(options);
  if (idx->has_split(options.train_split)) return as(Type::idx, std::move(idx));
  auto cifar = make_cifar_layout(options);
  if (cifar->has_split(options.train_split)) return as(Type::cifar, std::move(cifar));
  if (core::file_exists(options.data_dir + "/" + options.train_split + ".csv")) {
    return as(Type::csv, csv_layout(options));
  }
  auto shards = make_shard_layout(options);
  if (shards->has_split(options.train_split)) return as(Type::shards, std::move(shards));
  if (!hdf5_files_of(options.data_dir, options.train_split).empty()) return as(Type::hdf5, make_hdf5_layout(options));
  if (has_train_classes(options)) return nullptr;
  auto list = csv_layout(options);
  if (list->has_split(options.train_split)) return as(Type::csv, std::move(list));
  auto numpy = make_numpy_layout(options);
  if (numpy->has_split(options.train_split)) return as(Type::numpy, std::move(numpy));
  return nullptr;
}

/// Whether the root's folders are classes, not folders of images beside a list.
bool has_root_classes(const config::DataOptions& options) {
  const std::vector<std::string> folders = folders_in(options.data_dir);
  const auto is_other = [](const std::string& folder) {
    const std::string name = core::lower_case(folder);
    for (const char* const word :
         {"image", "img", "jpg", "train", "test", "val", "annotation", "data", "label", "final_"}) {
      if (name.rfind(word, 0) == 0) return true;
    }
    return false;
  };
  return has_no_val_split(options) && folders.size() >= 2 && std::none_of(folders.begin(), folders.end(), is_other);
}

// Words with blanks between them.
constexpr char kTrainLists[] =
    "annotations/trainval.txt annotations/list.txt meta/train.txt labels/train1.txt images_variant_train.txt "
    "train_labels train-labels trainLabels train_list "
    "train_annotations training_labels labels annotations metadata list";
constexpr char kTrainFolders[] = "Final_Training/Images Training/Images";
/// The same of the splits that may validate, by their usual names.
constexpr std::pair<const char*, const char*> kOtherNames[] = {
    {"val",
     "Val VAL Validation VALIDATION Valid VALID val_set validation_set dev val_labels val-labels valid_labels "
     "validation_labels val_list val_annotations labels/val1.txt images_variant_val.txt"},
    {"test",
     "Test TEST testing Testing TESTING test_set Final_Test/Images annotations/test.txt meta/test.txt labels/test1.txt "
     "images_variant_test.txt test_list"}};
constexpr char kNested[] =
    "cifar-10-batches-bin cifar-10-batches-py cifar-100-binary cifar-100-python raw gzip MNIST/raw FashionMNIST/raw "
    "KMNIST/raw EMNIST/raw tiny-imagenet-200 GTSRB ILSVRC/Data/CLS-LOC food-101";

std::vector<std::string> each_of(const char* words) { return core::split_words(words, ' '); }

std::unique_ptr<Layout> renamed(std::unique_ptr<Layout> layout, const SplitNames& names, const std::string& note) {
  auto result = make_renamed_layout(std::move(layout), names);
  if (!note.empty()) result->note += (result->note.empty() ? "" : "; ") + note;
  return result;
}

/// Splits that may validate, where none has a usual name.
std::unique_ptr<Layout> with_other_names(std::unique_ptr<Layout> layout) {
  if (layout->type == config::DatasetType::hdf5) return layout;  // each question opens its files
  for (const char* const usual : kValSplits) {
    if (layout->has_split(usual)) return layout;
  }
  SplitNames names;
  std::string note;
  for (const auto& [usual, others] : kOtherNames) {
    for (const std::string& other : each_of(others)) {
      if (names.count(usual) > 0 || !layout->has_split(other)) continue;
      names.emplace(usual, other);
      note += core::format("{}split '{}' is {}", note.empty() ? "" : ", ", usual, other);
    }
  }
  return names.empty() ? std::move(layout) : renamed(std::move(layout), names, note);
}

/// The only folder with a word in its name, in any case of letters, that holds class folders; empty: none, or several.
std::string only_folder_with(const config::DataOptions& options, const char* word) {
  std::string found;
  for (const std::string& name : folders_in(options.data_dir)) {
    config::DataOptions there = options;
    there.train_split = name;
    if (core::lower_case(name).find(word) == std::string::npos || !has_train_classes(there)) continue;
    if (!found.empty()) return "";
    found = name;
  }
  return found;
}

/// Usual names of the training split, where nothing has the name in the options; null: nothing.
std::unique_ptr<Layout> layout_by_other_name(const config::DataOptions& options) {
  using Type = config::DatasetType;
  if (has_train_classes(options) || has_root_classes(options)) return nullptr;
  const std::string usual = config::DataOptions().train_split;
  if (options.train_split != usual) return nullptr;
  const auto found = [&](const std::string& name) {
    return core::format("split '{}' is {}", usual, core::printable(name));
  };
  for (const std::string& name : each_of(kTrainLists)) {
    config::DataOptions there = options;
    there.train_split = name;
    const std::string list = list_of_split(options.data_dir, name);
    if (list.empty()) continue;
    const std::string file = list.substr(options.data_dir.size() + 1);
    return renamed(as(Type::csv, csv_layout(there)), {{usual, file}}, found(file));
  }
  if (is_directory(options.data_dir + "/" + usual)) return nullptr;
  std::vector<std::string> names = each_of(kTrainFolders);
  if (const std::string name = only_folder_with(options, "train"); !name.empty()) names.push_back(name);
  for (const std::string& name : names) {
    config::DataOptions there = options;
    there.train_split = name;
    if (!has_train_classes(there)) continue;
    const bool has_videos = looks_like_clips(there);
    SplitNames splits = {{usual, name}};
    std::string note = found(name + "/");
    for (const char* const word : {"val", "test"}) {
      const std::string other = only_folder_with(options, word);
      if (other.empty() || other == word || !splits.emplace(word, other).second) continue;
      note += core::format(", split '{}' is {}/", word, core::printable(other));
    }
    return renamed(as(has_videos ? Type::clips : Type::folder, folder_layout(there, has_videos)), splits, note);
  }
  return nullptr;
}

/// A data set in a folder below data_dir: the only one, or one that archives unpack to; null: there is none.
std::unique_ptr<Layout> layout_below(const config::DataOptions& options) {
  if (is_directory(options.data_dir + "/" + options.train_split) || has_root_classes(options)) return nullptr;
  const std::vector<std::string> folders = folders_in(options.data_dir);
  std::vector<std::string> places = each_of(kNested), with_train;
  for (const std::string& folder : folders) {
    config::DataOptions there = options;
    there.data_dir += "/" + folder;
    if (has_train_classes(there)) with_train.push_back(folder);
  }
  if (folders.size() == 1) {
    places.push_back(folders.front());
  } else if (with_train.size() == 1) {
    places.push_back(with_train.front());
  }
  for (const std::string& place : places) {
    config::DataOptions there = options;
    there.data_dir = options.data_dir + "/" + place;
    if (!is_directory(there.data_dir)) continue;
    std::unique_ptr<Layout> layout = layout_by_name(there);
    if (layout == nullptr) layout = layout_by_other_name(there);
    const bool has_classes =
        has_train_classes(there) || (has_no_val_split(there) && folders_in(there.data_dir).size() >= 2);
    if (layout == nullptr && has_classes) {
      const bool has_videos = looks_like_clips(there);
      layout =
          as(has_videos ? config::DatasetType::clips : config::DatasetType::folder, folder_layout(there, has_videos));
    }
    if (layout == nullptr && folders.size() == 1 && place == folders.front()) layout = layout_below(there);
    if (layout != nullptr) return renamed(std::move(layout), {}, "data is in " + core::printable(place) + "/");
  }
  return nullptr;
}

/// Whether a column has one value for each folder and another for each other folder: then folders are classes.
bool agrees_with_folders(const std::map<std::string, std::set<std::string>>& values_by_folder) {
  std::set<std::string> values;
  for (const auto& [folder, of_folder] : values_by_folder) {
    if (of_folder.size() != 1 || !values.insert(*of_folder.begin()).second) return false;
  }
  return true;
}

/// A list beside folders that names most of their images, in no column as the folders do; empty: there is none.
std::string list_of_folders(const config::DataOptions& options) {
  constexpr int64_t kRows = 100'000;
  for (const std::string& name : names_in(options.data_dir)) {
    if (!has_list_name(name) || core::ends_with(name, ".txt")) continue;
    try {
      CsvManifest list(options.data_dir + "/" + name, options, "", name);
      std::vector<std::map<std::string, std::set<std::string>>> columns(list.header().size());
      std::set<std::string> folders;
      int64_t rows = 0, found = 0;
      FileStamp stamp;
      for (; rows < kRows && list.next(); ++rows) {
        const std::string path = list.image(stamp);
        if (stamp.size < 0) continue;
        ++found;
        const std::string folder = path.substr(0, path.find('/'));
        folders.insert(folder);
        for (size_t i = 0; i < columns.size(); ++i) {
          if (columns[i][folder].size() < 2) columns[i][folder].insert(list.field(i));
        }
      }
      const bool agrees = std::any_of(columns.begin(), columns.end(), agrees_with_folders);
      if (2 * found > rows && folders.size() > 1 && !agrees) return name;
    } catch (const core::Error&) {  // it is no such list
    }
  }
  return "";
}

/// Whether names are the same but for numbers behind them: part_1 and part_2.
bool differ_by_number(const std::vector<std::string>& names) {
  const auto stem = [](const std::string& name) { return name.substr(0, name.find_last_not_of("0123456789") + 1); };
  const std::string first = stem(names.front());
  const auto is_same = [&](const std::string& name) { return stem(name) == first && name != first; };
  return first.size() > 2 && names.size() > 1 && std::all_of(names.begin(), names.end(), is_same);
}

/// Folders in data_dir that would be taken for classes and are parts of a data set or its splits. Throws Error{data}.
void refuse_other_folders(const config::DataOptions& options) {
  const std::vector<std::string> folders = folders_in(options.data_dir);
  if (folders.empty() || is_directory(options.data_dir + "/" + options.train_split)) return;
  const std::string place = core::printable(options.data_dir);
  const std::string named = core::list_text(folders, kMaxNamed);
  const auto begins_with = [](const std::string& folder, const std::vector<std::string>& words) {
    const std::string name = core::lower_case(folder);
    return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
      const std::string rest = name.rfind(word, 0) == 0 ? name.substr(word.size()) : "?";
      return rest.empty() || std::string_view("0123456789_-. ").find(rest[0]) != std::string_view::npos;
    });
  };
  const std::vector<std::string> of_training = {"train", "training", "data"};
  const auto is_split = [&](const std::string& folder) {
    return begins_with(folder, of_training) || begins_with(folder, {"val", "valid", "validation", "test", "testing"});
  };
  if (folders.size() > 1 && std::all_of(folders.begin(), folders.end(), is_split)) {
    const auto train = std::find_if(folders.begin(), folders.end(),
                                    [&](const std::string& folder) { return begins_with(folder, of_training); });
    throw layout_error(
        core::ErrorKind::data,
        core::format("{} holds {}, which are called like splits and not like classes", place, core::printable(named)),
        options,
        core::format("name the split to train on: --train-split {} (and --val-split); where the folders "
                     "are classes: --dataset folder",
                     train == folders.end() ? "NAME" : core::shell_word(*train)));
  }
  if (!differ_by_number(folders)) return;
  const std::string list = list_of_folders(options);
  if (list.empty()) return;
  throw layout_error(
      core::ErrorKind::data,
      core::format("{} holds {}, whose images {} lists: they are parts and not classes", place, core::printable(named),
                   core::printable(list)),
      options,
      core::format("--data-dir {} --val-fraction 0.1, with --csv-label for the column of the classes; where "
                   "the folders are classes: --dataset folder",
                   core::shell_word(options.data_dir + "/" + list)));
}

std::unique_ptr<Layout> detected(const config::DataOptions& options) {
  using Type = config::DatasetType;
  if (!is_directory(options.data_dir)) {
    if (is_numpy_file(options)) return as(Type::numpy, make_numpy_layout(options));
    return is_list_file(options) ? as(Type::csv, csv_layout(options)) : as(Type::hdf5, make_hdf5_layout(options));
  }
  for (const auto find : {layout_by_name, layout_by_other_name, layout_below}) {
    if (auto layout = find(options)) return layout;
  }
  if (has_class_folders(options)) {
    refuse_other_folders(options);
    const bool has_videos = looks_like_clips(options);
    return as(has_videos ? Type::clips : Type::folder, folder_layout(options, has_videos));
  }
  if (!whole_hdf5_files(options.data_dir).empty()) return as(Type::hdf5, make_hdf5_layout(options));
  throw layout_error(core::ErrorKind::no_input,
                     core::format("{} holds no data set that is known here", core::printable(options.data_dir)),
                     options, found_text(options.data_dir) + lists_text(options));
}

}  // namespace

void require_images(const Source& source, const std::string& split) {
  if (source.size() > 0) return;
  throw core::Error(core::ErrorKind::data, core::format("split '{}' has 0 images", core::printable(split)),
                    kImagesRead);
}

std::string expected_data_tree(const config::DataOptions& options) {
  if (options.dataset == config::DatasetType::clips) return expected_clips(options);
  const std::string& train = options.train_split;
  const bool is_pose = options.task == config::TaskKind::head_pose;
  return core::format(
      "expected below --data-dir one of\n"
      "  IDX:    {0}-images-idx3-ubyte[.gz], {0}-labels-idx1-ubyte[.gz], and the same for t10k\n"
      "  CIFAR:  data_batch_1.bin ... test_batch.bin, or the pickles of Python\n"
      "  NumPy:  x_{0}.npy, y_{0}.npy and x_val.npy, y_val.npy, or one .npz file with such arrays\n"
      "  folder: {0}/<class>/*.jpg and val/<class>/*.jpg (JPEG, PNG, BMP, WebP, TIFF, GIF, PNM)\n"
      "  CSV:    {0}.csv and val.csv with the columns path,label{1}, or one .csv file (.tsv, .txt)\n"
      "  clips:  {0}/<class>/<video>.mp4 (.avi, .mkv, .webm) or {0}/<class>/<video>/frame_0001.jpg and the same for "
      "val\n"
      "          (other names of frames: --dataset clips)\n"
      "  shards: {0}-000000.tar and val-000000.tar as train pack or WebDataset write them\n"
      "  HDF5:   {0}.h5 and val.h5, or of each several ({0}-*.h5, {0}/*.h5), or one .h5 with the groups\n"
      "          {0} and val; in each a data set x, data, images, inputs, spectrograms or\n"
      "          features [N, H, W] or [N, C, H, W] and one y, labels or targets [N]{2}",
      train, is_pose ? " or path,yaw,pitch,roll" : "",
      is_pose
          ? "\n  --dataset 300wlp: <split>/**/<name>.jpg and <name>.mat (--train-split 300W_LP --val-split AFLW2000)\n"
            "  --dataset biwi:   <subject>/frame_00003_rgb.png and frame_00003_pose.txt"
          : "");
}

core::Error layout_error(core::ErrorKind kind, const std::string& message, const config::DataOptions& options,
                         std::string steps) {
  if (!steps.empty() && steps.back() == '\n') steps.pop_back();
  if (!steps.empty() && steps.front() == '\n') steps.erase(0, 1);
  const std::string tree = expected_data_tree(options);
  return steps.empty() ? core::Error(kind, message, tree) : core::Error(kind, message + "\n" + tree, steps);
}

std::unique_ptr<Layout> detect_layout(const config::DataOptions& options) {
  using Type = config::DatasetType;
  check_data_dir(options);
  switch (options.dataset) {
    case Type::idx: return as(Type::idx, make_idx_layout(options));
    case Type::cifar: return as(Type::cifar, make_cifar_layout(options));
    case Type::numpy: return as(Type::numpy, make_numpy_layout(options));
    case Type::csv: return as(Type::csv, csv_layout(options));
    case Type::folder: return as(Type::folder, folder_layout(options, /*has_videos=*/false));
    case Type::clips:
      if (is_list_of_videos(options)) return as(Type::csv, csv_layout(options));
      return as(Type::clips, folder_layout(options, /*has_videos=*/true));
    case Type::shards: return as(Type::shards, make_shard_layout(options));
    case Type::biwi:
    case Type::w300lp: return as(options.dataset, make_pose_layout(options));
    case Type::hdf5: return as(Type::hdf5, make_hdf5_layout(options));
    case Type::automatic: break;
  }
  return with_other_names(detected(options));
}

}  // namespace stoker::data
