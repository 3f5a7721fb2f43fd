// SPDX-License-Identifier: Apache-2.0
#include "data/dataset/hdf5_part.h"

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/format.h"
#include "core/system/file_system.h"
#include "data/storage/tree_walk.h"

namespace stoker::data {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;

/// The data set that was named, else the first usual name that exists.
std::string found_name(const Hdf5File& file, const std::string& train_split, const Hdf5Place& place,
                       const std::string& given, const std::vector<const char*>& usual, const char* option,
                       std::string& note) {
  const auto refuse = [&](const std::string& cause) {
    std::string list;
    for (const std::string& line : file.data_set_lines()) list += "\n  " + line;
    throw Error(ErrorKind::data, format("{}: {}", core::printable(place.path), cause),
                format("name it with --{}; {}{}", option,
                       list.empty() ? "the file holds no data sets" : "the file holds", list));
  };
  if (!given.empty()) {
    // "train/x" names x of every split.
    const std::string prefix = train_split + "/";
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

/// Where the channels of a sample lie: 0 as in [C, H, W], 2 as in [H, W, C], -1 where the sizes do not decide. Gray and
/// RGB are known by their number, others by being fewer than rows and columns.
int channel_dimension(const std::vector<int64_t>& sides) {
  for (const int at : {0, 2}) {
    const int64_t side = sides[static_cast<size_t>(at)];
    if (side == 1 || side == 3) return at;
  }
  if (sides[0] < std::min(sides[1], sides[2])) return 0;
  return sides[2] < std::min(sides[0], sides[1]) ? 2 : -1;
}

void read_shape(Hdf5Part& part) {
  const NumberArray& array = part.array->array();
  const std::vector<int64_t>& dims = array.dims;
  const auto refuse = [&](const std::string& cause) {
    throw Error(ErrorKind::data,
                format("{}: data set {}: {}", core::printable(part.place.path), core::printable(array.name), cause),
                "samples are [N, H, W], [N, C, H, W] or [N, H, W, C] where channels are 1, 3, or fewer than "
                "rows and columns");
  };
  std::vector<int64_t> image = {dims.begin() + 1, dims.end()};  // H, W, C
  const int channels = image.size() == 3 ? channel_dimension(image) : -1;
  if (image.size() == 2) {
    image.push_back(1);
  } else if (channels == 0) {
    part.channels_first = true;
    image = {image[1], image[2], image[0]};
    part.notes.push_back(format("{} is taken as [N, C, H, W]", array.name));
  } else if (channels == 2) {
    part.notes.push_back(format("{} is taken as [N, H, W, C]", array.name));
  } else {
    std::string text;
    for (const int64_t side : dims) text += (text.empty() ? "" : ", ") + std::to_string(side);
    refuse(format("it has {}, [{}]", core::counted(static_cast<int64_t>(dims.size()), "dimension"), text));
  }
  constexpr int64_t kMaxSide = 65'535;
  if (image[0] > kMaxSide || image[1] > kMaxSide) refuse(format("samples of {} x {}", image[0], image[1]));
  constexpr int64_t kMaxChannels = 1024;
  if (image[2] > kMaxChannels) refuse(format("{} channels; {} are read at most", image[2], kMaxChannels));
  constexpr int64_t kMaxNumbers = int64_t{1} << 28;  // 1 GiB as the network sees them
  if (image[0] * image[1] > kMaxNumbers / image[2]) refuse(format("samples of more than {} numbers", kMaxNumbers));
  part.shape = {0, image[0], image[1], image[2], array.element};
}

void describe(Hdf5Part& part, const std::vector<std::string>& found) {
  const NumberArray& array = part.array->array();
  std::string storage = "in one piece";
  if (!array.chunk.empty()) {
    storage = format("in {} chunks", core::count_text(static_cast<int64_t>(array.places.size())));
    for (const ChunkFilter filter : array.filters)
      storage += filter == ChunkFilter::deflate ? ", deflated" : ", shuffled";
  }
  part.notes.push_back(format("{}: {} {} of {} x {}, {}; labels {} {}", part.place.path, array.name,
                              element_name(array.element), part.shape.height, part.shape.width, storage,
                              part.labels.name, part.labels.type));
  for (const std::string& note : found) {
    if (!note.empty()) part.notes.push_back(note);
  }
  if (part.array->decoded_together() > 1) {
    part.notes.push_back(
        format("{} samples share a deflated chunk, which a full shuffle decodes for few of them at a time: "
               "--shuffle-buffer {} keeps neighbours together",
               part.array->decoded_together(), 64 * part.array->decoded_together()));
  }
}

}  // namespace

void Hdf5Part::fail_labels(const std::string& cause, const std::string& hint) const {
  throw Error(ErrorKind::data,
              format("{}: data set {}: {}", core::printable(place.path), core::printable(labels.name), cause), hint);
}

Hdf5Part open_hdf5_part(const config::DataOptions& options, const Hdf5Place& place, int64_t files,
                        std::shared_ptr<const StagedFiles> copies) {
  Hdf5Part part;
  part.place = place;
  part.staged = std::move(copies);
  const Hdf5File file(part.staged ? part.staged->copy_or_original(place.path) : place.path);
  std::vector<std::string> found(2);
  const std::string input =
      found_name(file, options.train_split, place, options.hdf5_input, kUsualInputs, "hdf5 INPUT", found[0]);
  const std::string label =
      found_name(file, options.train_split, place, options.hdf5_label, kUsualLabels, "hdf5 ,LABEL", found[1]);
  part.array = std::make_shared<SampleArray>(file.bytes(), file.array(input), files);
  part.labels = file.labels(label, part.array->samples());
  read_shape(part);
  describe(part, found);
  return part;
}

namespace {

namespace fs = std::filesystem;

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// In the order in which people number files; a folder that cannot be listed has none.
std::vector<std::string> files_by_number(const std::string& folder) {
  std::vector<core::DirectoryEntry> entries;
  core::posix_file_system().list(folder, entries);
  std::vector<std::string> names;
  for (const core::DirectoryEntry& entry : entries) names.push_back(entry.name);
  std::sort(names.begin(), names.end(), comes_before);
  return names;
}

}  // namespace

bool has_hdf5_name(const std::string& path) {
  const std::string extension = core::lower_case(fs::path(path).extension().string());
  return extension == ".h5" || extension == ".hdf5" || extension == ".he5" || extension == ".hdf";
}

std::vector<std::string> hdf5_files_in(const std::string& data_dir) {
  if (is_file(data_dir)) {
    if (has_hdf5_name(data_dir)) return {data_dir};
    return {};
  }
  std::vector<std::string> files;
  for (const std::string& name : files_by_number(data_dir)) {
    const std::string path = (fs::path(data_dir) / name).string();
    if (has_hdf5_name(path) && is_file(path)) files.push_back(path);
  }
  return files;
}

std::vector<std::string> hdf5_files_of(const std::string& data_dir, const std::string& split) {
  std::vector<std::string> numbered;
  for (const std::string& path : hdf5_files_in(data_dir)) {
    const std::string stem = fs::path(path).stem().string();
    if (path == data_dir) continue;
    if (stem == split) return {path};
    if (stem.rfind(split + "-", 0) == 0 || stem.rfind(split + "_", 0) == 0) numbered.push_back(path);
  }
  if (!numbered.empty()) return numbered;
  const std::string folder = (fs::path(data_dir) / split).string();
  const std::vector<std::string> names = files_by_number(folder);
  std::error_code ignored;
  const auto is_folder = [&](const std::string& name) { return fs::is_directory(fs::path(folder) / name, ignored); };
  if (std::any_of(names.begin(), names.end(), is_folder)) return {};
  return hdf5_files_in(folder);
}

std::vector<std::string> whole_hdf5_files(const std::string& data_dir) {
  const std::vector<std::string> files = hdf5_files_in(data_dir);
  if (files.size() < 2) return files;
  for (const char* const split : {"train", "val", "valid", "validation", "test", "eval", "dev"}) {
    if (!hdf5_files_of(data_dir, split).empty()) return {};
  }
  return files;
}

}  // namespace stoker::data
