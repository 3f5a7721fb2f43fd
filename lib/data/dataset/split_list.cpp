// SPDX-License-Identifier: Apache-2.0
#include "data/dataset/split_list.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "core/error.h"
#include "core/format.h"
#include "core/system/file.h"
#include "core/system/stop_signal.h"
#include "data/container/mat_file.h"
#include "data/dataset/csv_manifest.h"
#include "data/dataset/file_source.h"
#include "data/storage/tree_walk.h"

namespace stoker::data {
namespace {

using core::format;
using core::printable;

constexpr int64_t kNone = -1;
constexpr char kListHint[] = "a list names an image and its class in each line: val.csv with the columns path,label";

/// A row of a list, as it stands there.
struct ListedImage {
  std::string path;  ///< below data_dir
  FileStamp stamp;
  std::string label;
};

int64_t whole_number(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0 ? value : kNone;
}

/// Labels of a list as places in the list of classes: names, numbers of folders that are called 00007, or else places.
class ClassPlaces {
 public:
  explicit ClassPlaces(const std::vector<std::string>& class_names) : count_(static_cast<int64_t>(class_names.size())) {
    for (int64_t i = 0; i < count_; ++i) {
      const std::string& name = class_names[static_cast<size_t>(i)];
      by_name_.emplace(name, i);
      const int64_t number = whole_number(name);
      if (number != kNone) by_number_.emplace(number, i);
    }
  }

  int64_t of_name(const std::string& label) const {
    const auto found = by_name_.find(label);
    if (found != by_name_.end()) return found->second;
    const auto first = by_name_.find(label.substr(0, label.find(' ')));  // "n01440764 240 382 1647 1496"
    if (first != by_name_.end()) return first->second;
    const auto number = by_number_.find(whole_number(label));
    return number == by_number_.end() ? kNone : number->second;
  }
  int64_t count() const { return count_; }

 private:
  const int64_t count_;
  std::unordered_map<std::string, int64_t> by_name_;
  std::unordered_map<int64_t, int64_t> by_number_;
};

/// Lists in and beside the folder of a split, the likeliest first.
std::vector<std::string> lists_for(const std::string& data_dir, const std::string& split) {
  std::vector<std::string> lists;
  const std::string folder = data_dir + "/" + split;
  const std::string above = folder.substr(0, folder.rfind('/'));
  const std::string last = folder.substr(folder.rfind('/') + 1);
  for (const std::string& name :
       {last, last + "_labels", last + "_annotations", last + "_list", "LOC_" + last + "_solution"}) {
    const std::string list = list_of_split(above, name);
    if (!list.empty()) lists.push_back(list);
  }
  for (const std::string& place : {folder, above, data_dir}) {
    for (const std::string& name : names_in(place)) {
      const bool is_of_all =
          place != folder && name.compare(0, 3, "GT-") != 0 && name != "LOC_" + last + "_solution.csv";
      if (has_list_name(name) && !is_of_all) lists.push_back(place + "/" + name);
    }
  }
  return lists;
}

/// The rows of a list whose images are in the folder of the split; none where it is a list of something else.
std::vector<ListedImage> rows_of(const std::string& list, const config::DataOptions& options,
                                 const std::string& split) {
  std::vector<ListedImage> rows;
  try {
    config::DataOptions usual = options;
    usual.csv_path = config::DataOptions().csv_path;
    usual.csv_label.clear();
    LabelManifest manifest(list, usual, split);
    while (manifest.next()) {
      core::throw_if_stopped();
      ListedImage row;
      row.path = manifest.image(row.stamp);
      row.label = manifest.label();
      if (rows.empty() && row.stamp.size < 0) return {};
      rows.push_back(std::move(row));
    }
  } catch (const core::Error& error) {
    if (error.kind() != core::ErrorKind::data || !rows.empty()) throw;
    return {};
  }
  return rows;
}

/// The devkit's list of numbers, one per image in the order of their names; empty: there is none.
std::string find_ground_truth(const std::string& data_dir, const std::string& split) {
  std::vector<std::string> places = {data_dir + "/" + split, data_dir, data_dir + "/data"};
  for (const std::string& name : names_in(data_dir)) {
    if (name.find("devkit") == std::string::npos) continue;
    places.push_back(data_dir + "/" + name + "/data");
    places.push_back(data_dir + "/" + name);
  }
  for (const std::string& place : places) {
    for (const std::string& name : names_in(place)) {
      if (core::ends_with(name, "validation_ground_truth.txt")) return place + "/" + name;
    }
  }
  return "";
}

std::vector<std::string> words_in(const std::string& path) {
  constexpr uint64_t kMaxBytes = 64 << 20;
  std::vector<std::string> words;
  std::string word;
  for (const char byte : core::read_file(path, kMaxBytes) + "\n") {
    if (byte != ' ' && byte != '\n' && byte != '\r' && byte != '\t') {
      word += byte;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  return words;
}

/// The names of folders by ILSVRC's numbers, which are not those of the sorted folders: out of the devkit.
std::unordered_map<int64_t, std::string> ilsvrc_numbers(const std::string& ground_truth, std::string& file) {
  std::unordered_map<int64_t, std::string> names;
  const std::string place = ground_truth.substr(0, ground_truth.rfind('/'));
  for (const char* const name : {"/map_clsloc.txt", "/../map_clsloc.txt"}) {
    file = place + name;
    if (!core::file_exists(file)) continue;
    const std::vector<std::string> words = words_in(file);  // n02119789 1 kit_fox
    for (size_t i = 0; i + 1 < words.size(); i += 3) names.emplace(whole_number(words[i + 1]), words[i]);
    return names;
  }
  file = place + "/meta.mat";
  if (!core::file_exists(file)) return names;
  MatFile meta;
  std::vector<double> numbers;
  std::vector<std::string> texts;
  std::string problem = meta.open(file);
  if (problem.empty()) problem = meta.read_records("synsets", "ILSVRC2012_ID", "WNID", numbers, texts);
  if (!problem.empty())
    throw core::Error(core::ErrorKind::data, printable(file) + ": " + problem, "unpack the devkit again");
  for (size_t i = 0; i < numbers.size(); ++i) names.emplace(static_cast<int64_t>(numbers[i]), texts[i]);
  return names;
}

std::vector<ListedImage> ground_truth_rows(const config::DataOptions& options, const std::string& split,
                                           const std::string& file, const std::vector<std::string>& class_names,
                                           std::vector<std::string>& notes) {
  const std::vector<std::string> images = image_names_in(options.data_dir + "/" + split);
  const std::vector<std::string> numbers = words_in(file);
  if (images.size() != numbers.size()) {
    throw core::Error(core::ErrorKind::data,
                      format("{} has {} lines for the {} images of {}", printable(file), numbers.size(), images.size(),
                             printable(options.data_dir + "/" + split)),
                      "it has a line for each image in the order of their names: unpack both archives again");
  }
  std::string map_file;
  const std::unordered_map<int64_t, std::string> names = ilsvrc_numbers(file, map_file);
  const bool are_imagenets = class_names.size() == 1000 && class_names[0] == "n01440764";
  if (names.empty() && are_imagenets) {
    throw core::Error(
        core::ErrorKind::data,
        format("{} holds ILSVRC's numbers of classes, which are not in the order of their folders", printable(file)),
        "put meta.mat of the devkit (ILSVRC2012_devkit_t12/data) beside it");
  }
  notes.push_back(split + ": classes of " + printable(file) +
                  (names.empty() ? ", whose number 1 is the first class folder" : " and " + printable(map_file)));
  std::vector<ListedImage> rows;
  for (size_t i = 0; i < images.size(); ++i) {
    const int64_t number = whole_number(numbers[i]);
    const auto known = names.find(number);
    std::string label = numbers[i];
    if (known != names.end()) label = known->second;
    if (names.empty() && number >= 1 && number <= static_cast<int64_t>(class_names.size())) {
      label = class_names[static_cast<size_t>(number - 1)];
    }
    const std::string path = split + "/" + images[i];
    rows.push_back({path, stamp_of(options.data_dir + "/" + path), label});
  }
  return rows;
}

}  // namespace

std::shared_ptr<const Source> open_split_list(const config::DataOptions& options, const std::string& split,
                                              const std::vector<std::string>& class_names,
                                              std::vector<std::string>& notes) {
  std::vector<ListedImage> rows;
  std::string file;
  for (const std::string& list : lists_for(options.data_dir, split)) {
    rows = rows_of(list, options, split);
    file = list;
    if (!rows.empty()) break;
  }
  if (!rows.empty()) {
    notes.push_back(split + ": classes of " + printable(file));
  } else {
    file = find_ground_truth(options.data_dir, split);
    if (file.empty()) return nullptr;
    rows = ground_truth_rows(options, split, file, class_names, notes);
  }
  const ClassPlaces classes(class_names);
  const bool are_names = std::all_of(rows.begin(), rows.end(),
                                     [&](const ListedImage& row) { return classes.of_name(row.label) != kNone; });
  int64_t least = INT64_MAX, most = 0;
  for (const ListedImage& row : rows) {
    const int64_t number = whole_number(row.label);
    if (!are_names && number == kNone) {
      const std::string near = core::nearest_name(row.label, class_names);
      throw core::Error(core::ErrorKind::data,
                        format("{}: class '{}' does not occur in the training split{}", printable(file),
                               printable(row.label), near.empty() ? "" : "; did you mean '" + printable(near) + "'?"),
                        kListHint);
    }
    least = std::min(least, number);
    most = std::max(most, number);
  }
  const int64_t base = most == classes.count() && least >= 1 ? 1 : 0;
  if (!are_names) {
    if (most - base >= classes.count()) {
      throw core::Error(core::ErrorKind::data,
                        format("{}: class {} is out of range: there are {} class folders in training", printable(file),
                               most, classes.count()),
                        kListHint);
    }
    notes.push_back(format("{}: its classes are numbers: {} is '{}', the first class folder", split, base,
                           printable(class_names[0])));
  }
  FileList files(options.data_dir);
  ScanNotes scan_notes;
  for (const ListedImage& row : rows) {
    const int64_t label = are_names ? classes.of_name(row.label) : whole_number(row.label) - base;
    if (row.stamp.size < 0) scan_notes.count("files of the manifest that are not there", row.path);
    files.add(row.path, label, row.stamp);
  }
  files.stage(options.stage_dir, scan_notes);
  for (const std::string& line : scan_notes.lines()) notes.push_back(split + ": " + line);
  return make_file_source(std::move(files), class_names);
}

}  // namespace stoker::data
