// SPDX-License-Identifier: Apache-2.0
#include "commands/eval/open_inputs.h"

#include <filesystem>
#include <iostream>
#include <iterator>
#include <sstream>

#include "core/error.h"
#include "core/format.h"
#include "core/system/file.h"
#include "data/open_datasets.h"
#include "data/storage/tree_walk.h"

namespace stoker::train {
namespace {

using core::Error;
using core::ErrorKind;

constexpr uint64_t kMaxListBytes = 1 << 30;

void add_lines(const std::string& text, std::vector<std::string>& paths) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) paths.push_back(line);
  }
}

/// Paths of the command line, with lists in their place.
std::vector<std::string> listed_inputs(const std::vector<std::string>& inputs) {
  std::vector<std::string> paths;
  for (const std::string& input : inputs) {
    if (input == "-") {
      add_lines({std::istreambuf_iterator<char>(std::cin), {}}, paths);
    } else if (input.size() > 1 && input[0] == '@') {
      add_lines(core::read_file(input.substr(1), kMaxListBytes), paths);
    } else {
      paths.push_back(input);
    }
  }
  if (paths.empty()) throw Error(ErrorKind::no_input, "the list of inputs is empty", "name images, one per line");
  return paths;
}

/// "val" of "a/val-000003.tar"; empty: no shard.
std::string shard_split(const std::string& path) {
  const std::string name = std::filesystem::path(path).stem().string();
  const size_t dash = name.find_last_of('-');
  return core::ends_with(path, ".tar") && dash != std::string::npos ? name.substr(0, dash) : "";
}

}  // namespace

std::shared_ptr<const data::Source> open_inputs(const std::vector<std::string>& inputs, config::DataOptions options,
                                                const std::vector<std::string>& trained) {
  const std::vector<std::string> paths = listed_inputs(inputs);
  const std::string& first = paths.front();
  const bool is_set = core::ends_with(first, ".h5") || !shard_split(first).empty();
  if (is_set && paths.size() > 1) {
    throw Error(ErrorKind::usage, "HDF5 files and shards are predicted one at a time", "name one of them");
  }
  if (core::ends_with(first, ".h5")) return data::open_labelled(options, first, "", trained);
  if (is_set) {
    const std::filesystem::path folder = std::filesystem::path(first).parent_path();
    options.dataset = config::DatasetType::shards;
    return data::open_labelled(options, folder.empty() ? "." : folder.string(), shard_split(first), trained);
  }
  if (options.dataset != config::DatasetType::clips) {
    return paths.size() == 1 && data::is_directory(first) ? data::open_loose_images(first, options.follow_symlinks)
                                                          : data::open_loose_images(paths, options.follow_symlinks);
  }
  if (paths.size() == 1) return data::open_loose_videos(first, options);
  throw Error(ErrorKind::usage, "the network takes clips: several inputs cannot be predicted at once",
              "give a folder of frames, or a folder of such folders");
}

}  // namespace stoker::train
