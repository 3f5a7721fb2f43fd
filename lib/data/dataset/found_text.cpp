// SPDX-License-Identifier: Apache-2.0
#include "data/layout.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "core/format.h"
#include "data/storage/byte_reader.h"
#include "data/storage/tree_walk.h"

namespace stoker::data {
namespace {

using core::format;
using core::printable;

/// A kind of file by the end of its name, or by the whole name, as of published data sets. In the step {0} is a file of
/// it, {1} the pattern of such files, {2} its folder, {3} the data folder.
struct FoundKind {
  const char *ending, *name, *step;
};
constexpr char kUnpack[] = "unpack it: tar xf {0}";
constexpr char kAsFiles[] = "write its images as files of class folders, or as tar shards";
constexpr char kFrames[] =
    "train reads frames, a folder per video: for v in {1}; do mkdir -p \"${v%.*}\"; ffmpeg -i \"$v\" "
    "\"${v%.*}/frame_%04d.jpg\"; done";
constexpr char kVideos[] = "videos are learned from a folder per class (CLASS/*.mp4), or from a list of them";
constexpr char kCameraRaw[] = "convert them to TIFF: dcraw_emu -T {1}";
constexpr char kSounds[] = "sounds are learned from a folder per class (CLASS/*.wav), or from a list of them";
// Attributes are -1 and 1, and a second list has the splits. Lists of the archive begin with their length, those of
// Kaggle have commas.
constexpr char kCelebA[] =
    "write it as lists of labels: (cd {3} && python3 -c \"import glob; g = lambda n: glob.glob('**/' + n, "
    "recursive=True); "
    "d = {p.split('/')[-1]: p for p in g('*.jpg')}; r = lambda n: [l.replace(',', ' ').split() for l in open(g(n + "
    "'.*')[0]) if l.strip()]; a = r('list_attr_celeba'); a = a[len(a[0]) == 1:]; s = dict(r('list_eval_partition')); "
    "[open(n + '.csv', "
    "'w').writelines(','.join(c) + chr(10) for c in [['path'] + a[0][1 - len(a[1]):]] + [[d[l[0]]] + [v.replace('-1', "
    "'0') for v in l[1:]] for l in a[1:] if s[l[0]] == str(k)]) for k, n in enumerate(['train', 'val', 'test'])]\"); "
    "train --data-dir {3} --task multilabel";
constexpr char kFlowers[] =
    "write its lists: (cd {2} && python3 -c \"from scipy.io import loadmat; y = "
    "loadmat('imagelabels.mat')['labels'][0]; "
    "s = loadmat('setid.mat'); [open(n + '.csv', 'w').writelines(['path,label' + chr(10)] + ['jpg/image_%05d.jpg,%d' % "
    "(i, y[i - 1] - 1) + chr(10) for i in s[k][0]]) for n, k in [('train', 'trnid'), ('val', 'valid'), ('test', "
    "'tstid')]]\")";
constexpr char kSvhn[] =
    "write its arrays: (cd {2} && python3 -c \"import numpy as np; from scipy.io import loadmat; [(np.save('x_' + s + "
    "'.npy', m['X'].transpose(3, 0, 1, 2)), np.save('y_' + s + '.npy', m['y'].ravel() % 10)) for s in ['train', "
    "'test'] "
    "for m in [loadmat(s + '_32x32.mat')]]\")";
constexpr char kStl[] =
    "write its arrays: (cd {2} && python3 -c \"import numpy as np; [(np.save('x_' + s + '.npy', np.fromfile(s + "
    "'_X.bin', "
    "'uint8').reshape(-1, 3, 96, 96).transpose(0, 3, 2, 1)), np.save('y_' + s + '.npy', np.fromfile(s + '_y.bin', "
    "'uint8') - 1)) for s in ['train', 'test']]\")";
constexpr char kCub[] =
    "write its lists: (cd {2} && python3 -c \"r = lambda n: [l.split() for l in open(n + '.txt')]; c = "
    "dict(r('classes')); y = dict(r('image_class_labels')); t = dict(r('train_test_split')); [open(n + '.csv', "
    "'w').writelines(['path,label' + chr(10)] + ['images/%s,%s' % (p, c[y[i]]) + chr(10) for i, p in r('images') if "
    "t[i] == k]) for n, k in [('train', '1'), ('test', '0')]]\")";
constexpr char kHuggingFace[] =
    "write it as CSV, here with the key 'label': (cd {3} && python3 -c \"import csv, glob, json; [csv.writer(open("
    "(p.split('/')[0] if '/' in p else 'train') + '.csv', 'w')).writerows([['path', 'label']] + [[p[:-14] + "
    "r['file_name'], r['label']] for r in map(json.loads, open(p))]) for p in glob.glob('**/metadata.jsonl', "
    "recursive=True)]\")";
// No command that loads it: that would run what it holds.
constexpr char kImageNet32[] =
    "write its arrays with np.save(), labels from 0: x_train.npy of data.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1) "
    "and y_train.npy of labels - 1, and x_val.npy and y_val.npy of val_data";
constexpr char kAsList[] = "where it names the classes of images, write them as train.csv with the columns path,label";
constexpr char kSaveArrays[] = "write its arrays with np.save() as x_train.npy and y_train.npy";
constexpr char kSlices[] = "write slices as PNG or TIFF, or as HDF5";
constexpr std::array kKinds = {
    FoundKind{".tar.gz", "archive", kUnpack},
    FoundKind{".tgz", "archive", kUnpack},
    FoundKind{".tar.bz2", "archive", kUnpack},
    FoundKind{".tar.xz", "archive", kUnpack},
    FoundKind{".tar.zst", "archive", kUnpack},
    FoundKind{".gz", "compressed file", "unpack it: gunzip {0}"},
    FoundKind{".zip", "zip archive", "unpack it: unzip -q {0}"},
    FoundKind{".json", "JSON file", kAsList},
    FoundKind{".jsonl", "JSON file", kAsList},
    FoundKind{".xlsx", "table of Excel", "save it as CSV with the columns path,label: train.csv"},
    FoundKind{".xls", "table of Excel", "save it as CSV with the columns path,label: train.csv"},
    FoundKind{".ods", "table", "save it as CSV with the columns path,label: train.csv"},
    FoundKind{".7z", "7z archive", "unpack it: 7z x {0}"},
    FoundKind{".rar", "rar archive", "unpack it: unrar x {0}"},
    FoundKind{
        ".tar", "tar archive",
        "unpack it (tar xf {0}), or, if it holds WebDataset's samples, name its split: --train-split is what stands "
        "before the number"},
    FoundKind{".parquet", "Parquet file",
              "write its images as files of class folders (pandas.read_parquet, column image['bytes']), or as HDF5"},
    FoundKind{".arrow", "Arrow file", "save its images as files: datasets.load_from_disk(...), image.save(...)"},
    FoundKind{".tfrecord", "TFRecord file", kAsFiles},
    FoundKind{".tfrecords", "TFRecord file", kAsFiles},
    FoundKind{".mdb", "LMDB database", kAsFiles},
    FoundKind{".rec", "RecordIO file", kAsFiles},
    FoundKind{".beton", "FFCV file", "give the data set that it was made of"},
    FoundKind{".mds", "MosaicML shard", kAsFiles},
    FoundKind{".mp4", "video", kVideos},
    FoundKind{".avi", "video", kVideos},
    FoundKind{".mov", "video", kVideos},
    FoundKind{".mkv", "video", kVideos},
    FoundKind{".webm", "video", kVideos},
    FoundKind{".m4v", "video", kVideos},
    FoundKind{".mpg", "video", kFrames},
    FoundKind{".mpeg", "video", kFrames},
    FoundKind{".wmv", "video", kFrames},
    FoundKind{".flv", "video", kFrames},
    FoundKind{".3gp", "video", kFrames},
    FoundKind{".mts", "video", kFrames},
    FoundKind{".cr2", "camera raw file", kCameraRaw},
    FoundKind{".cr3", "camera raw file", kCameraRaw},
    FoundKind{".nef", "camera raw file", kCameraRaw},
    FoundKind{".nrw", "camera raw file", kCameraRaw},
    FoundKind{".arw", "camera raw file", kCameraRaw},
    FoundKind{".dng", "camera raw file", kCameraRaw},
    FoundKind{".orf", "camera raw file", kCameraRaw},
    FoundKind{".rw2", "camera raw file", kCameraRaw},
    FoundKind{".raf", "camera raw file", kCameraRaw},
    FoundKind{".pef", "camera raw file", kCameraRaw},
    FoundKind{".srw", "camera raw file", kCameraRaw},
    FoundKind{".wav", "sound", kSounds},
    FoundKind{".mp3", "sound", kSounds},
    FoundKind{".flac", "sound", kSounds},
    FoundKind{".ogg", "sound", kSounds},
    FoundKind{".pdf", "PDF file", "write its pages as images: for f in {1}; do pdftoppm -png \"$f\" \"${f%.*}\"; done"},
    FoundKind{"list_attr_celeba.txt", "CelebA list", kCelebA},
    FoundKind{"list_attr_celeba.csv", "CelebA list", kCelebA},
    FoundKind{"imagelabels.mat", "Oxford flower list", kFlowers},
    FoundKind{"image_class_labels.txt", "CUB list", kCub},
    FoundKind{"metadata.jsonl", "Hugging Face list", kHuggingFace},
    FoundKind{"train_data_batch_1", "batch of the small ImageNet", kImageNet32},
    FoundKind{"train_32x32.mat", "SVHN file", kSvhn},
    FoundKind{"train_x.bin", "STL-10 file", kStl},
    FoundKind{".npy", "NumPy array", "call images and labels x_train.npy and y_train.npy (and x_val.npy, y_val.npy)"},
    FoundKind{".npz", "NumPy archive", "its arrays should be called x_train and y_train, or images and labels"},
    FoundKind{".mat", "MATLAB file", "write its arrays as HDF5 or .npy files"},
    FoundKind{".pkl", "pickle", kSaveArrays},
    FoundKind{".pickle", "pickle", kSaveArrays},
    FoundKind{".pt", "PyTorch file", "write its tensors with np.save() as x_train.npy and y_train.npy"},
    FoundKind{".bin", "binary file", "CIFAR's are called data_batch_1.bin or train.bin; write others with np.save()"},
    FoundKind{".h5", "HDF5 file", "name it itself as --data-dir"},
    FoundKind{".dcm", "DICOM file", "convert them to PNG or TIFF: dcm2pnm, or pydicom"},
    FoundKind{".nii", "NIfTI file", kSlices},
    FoundKind{".nii.gz", "NIfTI file", kSlices},
};

const FoundKind* kind_of_file(const std::string& name) {
  const std::string end = core::lower_case(name);
  const FoundKind* best = nullptr;
  for (const FoundKind& kind : kKinds) {
    const bool is_longer = best == nullptr || std::string(kind.ending).size() > std::string(best->ending).size();
    if (core::ends_with(end, kind.ending) && is_longer) best = &kind;
    if (best == nullptr && end.find(std::string(kind.ending) + "-") != std::string::npos)
      best = &kind;  // .tfrecord-00000-of
  }
  return best;
}

/// Whether the kind is known by a whole name.
bool is_of_a_data_set(const FoundKind& kind) { return kind.ending[0] != '.'; }

/// The step of a file's kind, below the data folder `top`; with `is_class` for all folders beside that of the file.
std::string step_for(const FoundKind& kind, const std::string& file, const std::string& top, bool is_class = false) {
  const size_t slash = file.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : file.substr(0, slash);
  const std::string above = folder.find('/') == std::string::npos ? "." : folder.substr(0, folder.rfind('/'));
  const std::string pattern = (is_class ? core::shell_word(above) + "/*" : core::shell_word(folder)) + "/*" +
                              core::shell_word(file.substr(std::min(file.size(), file.rfind('.'))));
  std::string text = kind.step;
  const std::pair<const char*, std::string> words[] = {{"{0}", core::shell_word(file)},
                                                       {"{1}", pattern},
                                                       {"{2}", core::shell_word(folder)},
                                                       {"{3}", core::shell_word(is_class ? above : top)}};
  for (const auto& [name, word] : words) {
    for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + word.size())) {
      text.replace(at, 3, word);
    }
  }
  return text;
}

/// The first bytes of a file; fewer where it is short or cannot be read.
std::string front_of(const std::string& path) {
  constexpr int64_t kFront = 1 << 16;
  std::vector<uint8_t> buffer;
  const FileStamp stamp = stamp_of(path);
  if (stamp.size < 0 || !read_sample_file(path, stamp, buffer, kFront).empty()) return "";
  return {buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(std::min(stamp.size, kFront))};
}

bool is_coco(const std::string& front) {
  return front.find("\"images\"") != std::string::npos || front.find("\"annotations\"") != std::string::npos;
}

/// Whether lines are those of YOLO: a class and at least four fractions.
bool is_yolo(const std::string& path) {
  const std::string front = front_of(path);
  const std::vector<std::string> words = core::split_words(front.substr(0, front.find('\n')), ' ');
  if (words.size() < 5 || words[0].find_first_not_of("0123456789") != std::string::npos) return false;
  return std::all_of(words.begin() + 1, words.end(), [](const std::string& word) {
    const bool is_fraction = word.find('.') != std::string::npos || word == "0" || word == "1";
    return is_fraction && word.find_first_not_of("0123456789.-e\r") == std::string::npos &&
           std::atof(word.c_str()) <= 1;
  });
}

constexpr char kBoxes[] =
    "boxes are not learned here: crop the objects into <split>/<class>/, or list a class per image in train.csv\n";

/// Annotations of boxes in or one folder below `folder`.
std::string boxes_text(const std::string& folder) {
  std::vector<std::string> places = {""};
  for (const std::string& name : names_in(folder)) {
    if (name[0] != '.' && is_directory(folder + "/" + name)) places.push_back(name + "/");
  }
  const size_t first_level = places.size();
  for (size_t i = 1; i < first_level && places.size() < 200; ++i) {
    for (const std::string& name : names_in(folder + "/" + places[i])) {
      if (name[0] != '.' && is_directory(folder + "/" + places[i] + name)) places.push_back(places[i] + name + "/");
    }
  }
  for (const std::string& place : places) {
    size_t looked_at = 0;
    for (const std::string& name : names_in(folder + "/" + place)) {
      const std::string path = folder + "/" + place + name, end = core::lower_case(name);
      if (is_directory(path) || looked_at > 20) continue;
      const bool is_xml = core::ends_with(end, ".xml"), is_json = core::ends_with(end, ".json");
      const bool is_text = core::ends_with(end, ".txt");
      looked_at += is_xml || is_json || is_text;
      const std::string front = is_json ? front_of(path) : "";
      if (front.find("\"shapes\"") != std::string::npos) {
        return format("{} is an annotation of labelme: {}", printable(path), kBoxes);
      }
      if (is_coco(front)) return format("{} holds annotations of COCO: {}", printable(path), kBoxes);
      if (is_xml && front_of(path).find("<annotation") != std::string::npos) {
        return format("{} is an annotation of Pascal VOC: {}", printable(path), kBoxes);
      }
      if (is_text && is_yolo(path)) return format("{} is an annotation of YOLO: {}", printable(path), kBoxes);
    }
  }
  return "";
}

/// Tar archives of WebDataset whose names are not those of a split: which hint to print, or how to name them.
std::string shards_text(const std::string& folder) {
  std::map<std::string, int64_t> stems;  // what stands before the number
  std::string packed;
  for (const std::string& name : names_in(folder)) {
    const size_t end = name.find(".tar");
    if (end == std::string::npos || name[0] == '.') continue;
    if (packed.empty() && name.size() > end + 4) packed = name;
    const size_t number = name.find_last_not_of("0123456789", end - (end > 0)) + 1;
    if (number >= end && number != 0) continue;  // no number
    ++stems[name.substr(0, number)];
  }
  if (stems.empty()) return "";
  std::string names, train, val, text;
  for (const auto& [stem, count] : stems) {
    std::string split = stem;
    if (!split.empty() && split.back() == '-') split.pop_back();
    names += format("{}{} whose names {}", names.empty() ? "" : ", ", core::counted(count, "archive"),
                    stem.empty() ? "are numbers" : "begin with '" + printable(stem) + "'");
    const std::string word = core::lower_case(stem);
    if (train.empty() && word.find("train") != std::string::npos && stem.back() == '-') train = split;
    if (val.empty() && word.find("val") != std::string::npos && stem.back() == '-') val = split;
  }
  text = "it holds " + names + ": ";
  if (!packed.empty()) {
    const std::string end = packed.substr(packed.rfind('.') + 1);
    const std::string tool = end == "zst" ? "zstd -d" : end == "xz" ? "unxz" : end == "bz2" ? "bunzip2" : "gunzip";
    return text + format("archives must not be compressed: {} {}/*.{}\n", tool, core::shell_word(folder), end);
  }
  if (train.empty())
    return text + "splits are recognized by names such as train-000000.tar and val-000000.tar: rename them\n";
  text += "--train-split " + core::shell_word(train);
  return text + (val.empty() ? " --val-fraction 0.1" : " --val-split " + core::shell_word(val)) + "\n";
}

/// Where the names of flat images begin with their classes, as cat.0.jpg.
std::string prefixes_text(const std::vector<std::string>& images) {
  std::map<std::string, int64_t> prefixes;
  for (const std::string& name : images) ++prefixes[name.substr(0, name.find_first_of("._-0123456789 "))];
  if (prefixes.size() < 2 || prefixes.count("") > 0 || 3 * prefixes.size() > images.size()) return "";
  std::vector<std::string> names;
  for (const auto& [name, count] : prefixes) names.push_back("'" + printable(name) + "'");
  return format("; their names begin with {}: where these are classes, move each into a folder of that name",
                core::list_text(names, 4));
}

/// The step where a folder one level below holds class folders, or the splits.
std::string below_text(const std::string& folder, const std::string& name) {
  const std::string below = folder + "/" + name;
  int64_t classes = 0;
  for (const std::string& inner : names_in(below)) {
    if (inner[0] == '.' || !is_directory(below + "/" + inner)) continue;
    const std::vector<std::string> files = classes < 2 ? names_in(below + "/" + inner) : std::vector<std::string>();
    const auto is_folder = [&](const std::string& file) { return is_directory(below + "/" + inner + "/" + file); };
    if (core::lower_case(inner).find("train") != std::string::npos &&
        std::any_of(files.begin(), files.end(), is_folder)) {
      return format("{0}/ holds {1}/: --data-dir {2} --train-split {3}\n", printable(name), printable(inner),
                    core::shell_word(below), core::shell_word(inner));
    }
    if (classes < 2 && std::none_of(files.begin(), files.end(), has_image_name)) return "";
    ++classes;
  }
  if (classes < 2) return "";
  return format("{}/ holds {} with images: where they are classes, --data-dir {} --val-fraction 0.1\n", printable(name),
                core::counted(classes, "folder"), core::shell_word(below));
}

/// Where images lie in the folder itself.
std::string loose_text(size_t images) {
  if (images == 0) return "";
  return format(
      "{} lie{} in it, but no folder per class: give the folder above, or list images with their classes "
      "in a CSV file; train predict takes loose images\n",
      core::counted(static_cast<int64_t>(images), "image"), images == 1 ? "s" : "");
}

}  // namespace

std::string file_found_text(const std::string& path) {
  const FoundKind* const kind = kind_of_file(path);
  if (kind == nullptr) return "";
  return format(
      "is {} {}: {}",
      std::string("aeiouAEIOUN").find(kind->name[0]) == std::string::npos || kind->name[0] == 'N' ? "a" : "an",
      kind->name, step_for(*kind, path, path.substr(0, path.rfind('/'))));
}

std::string found_text(const std::string& folder, bool is_class) {
  std::map<std::string, std::pair<int64_t, std::string>> kinds;  // by name: how many, the first
  std::vector<std::string> folders;
  size_t images = 0, of_windows = 0;
  const std::string shards = shards_text(folder);
  for (const std::string& name : names_in(folder)) {
    if (name[0] == '.') continue;
    if (is_directory(folder + "/" + name)) {
      folders.push_back(name);
      continue;
    }
    images += has_image_name(name);
    of_windows += name.find('\\') != std::string::npos;
    const FoundKind* const kind = kind_of_file(name);
    if (kind == nullptr || core::lower_case(name) == "lock.mdb" ||
        (!shards.empty() && name.find(".tar") != std::string::npos))
      continue;
    auto& [count, first] = kinds[kind->name];
    if (count++ == 0) first = name;
  }
  std::string text = loose_text(of_windows > 0 ? 0 : images) + shards;
  if (of_windows > 0) {
    text += "its names hold backslashes, which are folders of an archive of Windows: unpack it again with 7z x\n";
  }
  for (const auto& [name, found] : kinds) {
    const std::string path = folder + "/" + found.second;
    text += format("it holds {} (the first: {}): {}\n", core::counted(found.first, name), printable(found.second),
                   step_for(*kind_of_file(found.second), path, folder, is_class));
  }
  text += boxes_text(folder);
  // One level below: what a folder that was given one too high holds.
  std::set<std::string> named_lists;
  for (const std::string& name : folders) {
    const std::string below = folder + "/" + name;
    int64_t others = 0;
    std::string first, list;
    std::vector<std::string> flat;
    text += text.size() < 2000 ? below_text(folder, name) : "";
    for (const std::string& file : names_in(below)) {
      if (has_image_name(file)) flat.push_back(file);
      const FoundKind* const kind = kind_of_file(file);
      if (kind == nullptr || is_directory(below + "/" + file)) continue;
      if (others++ == 0) first = file;
      if (is_of_a_data_set(*kind)) list = file;
    }
    if (!flat.empty() && text.size() < 2000) {
      text += format("{}/ holds {} and no folder per class{}\n", printable(name),
                     core::counted(static_cast<int64_t>(flat.size()), "image"), prefixes_text(flat));
    }
    if (!list.empty()) {
      const FoundKind& kind = *kind_of_file(list);
      text += named_lists.insert(kind.name).second ? format("{}/ holds a {}, {}: {}\n", printable(name), kind.name,
                                                            printable(list), step_for(kind, below + "/" + list, folder))
                                                   : "";
    } else if (flat.empty() && others > 0 && text.size() < 2000) {
      const FoundKind* const kind = kind_of_file(first);
      text += format("{}/ holds {} (the first: {}): {}\n", printable(name), core::counted(others, kind->name),
                     printable(first), step_for(*kind, below + "/" + first, folder));
    }
  }
  if (text.empty() && folders.size() == 1) text = found_text(folder + "/" + folders.front(), is_class);
  return text;
}

std::string pixels_step(const std::string& path, const std::vector<std::string>& header) {
  const auto is_pixel = [](const std::string& name) { return core::lower_case(name).rfind("pixel", 0) == 0; };
  const auto is_number = [](const std::string& word) {
    return !word.empty() && word.find_first_not_of("0123456789.") == std::string::npos;
  };
  const size_t slash = path.rfind('/');
  const std::string folder = core::shell_word(slash == std::string::npos ? "." : path.substr(0, slash));
  const std::string name = path.substr(slash + 1);
  const std::string file = core::shell_word(name) == name ? name : "FILE";
  const std::string begin = format("write them as arrays: (cd {} && python3 -c \"import csv, numpy as np; ", folder);
  auto pixels = std::count_if(header.begin(), header.end(), is_pixel);
  if (pixels == 1) {  // fer2013: a text of numbers per row, and the splits in a column
    return format(
        "{}r = list(csv.DictReader(open('{}'))); [(np.save('x_' + n + '.npy', np.array([x['pixels'].split() for x in "
        "p], 'uint8').reshape(len(p), 48, 48)), np.save('y_' + n + '.npy', np.array([int(x['emotion']) for x in p]))) "
        "for n, u in [('train', 'Training'), ('val', 'PublicTest'), ('test', 'PrivateTest')] for p in [[x for x in r "
        "if x['Usage'] == u]]]\"), and train on them: --data-dir {} --dataset numpy",
        begin, file, folder);
  }
  constexpr std::ptrdiff_t kFewest = 64;  // digits of 8 by 8 pixels
  const bool has_names = pixels > 1;
  std::ptrdiff_t first = 1, label = 0;
  if (has_names) {
    first = std::find_if(header.begin(), header.end(), is_pixel) - header.begin();
    label = std::find_if_not(header.begin(), header.end(), is_pixel) - header.begin();
  } else {
    pixels = static_cast<std::ptrdiff_t>(header.size()) - 1;
    if (pixels < kFewest || !std::all_of(header.begin(), header.end(), is_number)) return "";
  }
  const std::string split = core::lower_case(name).find("test") != std::string::npos ? "test" : "train";
  const auto side = std::lround(std::sqrt(static_cast<double>(pixels)));
  const bool has_labels = label < static_cast<std::ptrdiff_t>(header.size());
  return format(
      "{}a = np.loadtxt('{}', 'uint8', delimiter=',', skiprows={}); np.save('x_{}.npy', a[:, {}:{}].reshape(-1, {}, "
      "{})){}\"), the same for other files, and train on them: --data-dir {} --dataset numpy",
      begin, file, has_names ? 1 : 0, split, first, first + pixels, side, side,
      has_labels ? format("; np.save('y_{}.npy', a[:, {}])", split, label) : "", folder);
}

}  // namespace stoker::data
