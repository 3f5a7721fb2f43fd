// SPDX-License-Identifier: Apache-2.0
#include "data/shard/pack_manifest.h"

#include <algorithm>
#include <filesystem>
#include <unordered_set>

#include "core/error.h"
#include "core/format.h"
#include "core/system/file.h"
#include "core/system/file_system.h"
#include "core/text/json.h"

namespace stoker::data {

STOKER_JSON_FIELDS(PackedSplit, complete, shards, images, bytes, bad_images, identity)

namespace {

namespace fs = std::filesystem;

constexpr char kManifestName[] = "pack.json", kClassesName[] = "classes.txt";
constexpr char kFormatName[] = "stoker-pack";
constexpr int64_t kManifestVersion = 1;
constexpr uint64_t kMaxManifestBytes = 1 << 20, kMaxClassesBytes = 64 << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

std::optional<PackManifest> read_pack_manifest(const std::string& directory) {
  const std::string path = directory + "/" + kManifestName;
  if (!core::file_exists(path)) return std::nullopt;
  const core::Json json = core::parse_json(core::read_file(path, kMaxManifestBytes), core::printable(path));
  try {
    if (json.at("format") != kFormatName || json.at("version") != kManifestVersion) {
      throw core::Error(core::ErrorKind::data, core::format("{} is not a {} of version {}", core::printable(path),
                                                            kFormatName, kManifestVersion));
    }
    return json.at("splits").get<PackManifest>();
  } catch (const core::Json::exception& error) {
    throw core::Error(core::ErrorKind::data, core::format("{}: {}", core::printable(path), core::problem_text(error)),
                      "pack the data set again into another folder");
  }
}

void write_pack_manifest(const std::string& directory, const PackManifest& manifest) {
  const core::Json json = {{"format", kFormatName}, {"version", kManifestVersion}, {"splits", manifest}};
  core::write_file_atomically(directory + "/" + kManifestName, core::json_page(json, 2), /*durable=*/true);
}

std::optional<std::vector<std::string>> read_classes_file(const std::string& directory) {
  const std::string path = directory + "/" + kClassesName;
  if (!core::file_exists(path)) return std::nullopt;
  const std::string content = core::read_file(path, kMaxClassesBytes);
  std::vector<std::string> names;
  std::unordered_set<std::string> seen;
  const bool is_marked = content.compare(0, kByteOrderMark.size(), kByteOrderMark) == 0;
  for (std::string& name : core::lines_of(is_marked ? content.substr(kByteOrderMark.size()) : content)) {
    const bool is_new = seen.insert(name).second;
    if (name.empty() || !is_new) {
      throw core::Error(core::ErrorKind::data,
                        core::format("{}:{}: {}", core::printable(path), names.size() + 1,
                                     name.empty() ? "the name of a class is missing"
                                                  : "class '" + core::printable(name) + "' stood there before"),
                        "the file has one name per line; the first line is class 0");
    }
    names.push_back(std::move(name));
  }
  return names;
}

void write_classes_file(const std::string& directory, const std::vector<std::string>& class_names) {
  std::string content;
  for (const std::string& name : class_names) {
    if (name.empty() || name.find_first_of("\n\r") != std::string::npos) {
      throw core::Error(
          core::ErrorKind::data,
          core::format("class '{}' cannot be packed: classes.txt has one name per line", core::printable(name)),
          "rename the class");
    }
    content += name + "\n";
  }
  core::write_file_atomically(directory + "/" + kClassesName, content, /*durable=*/true);
}

std::string shard_file_name(const std::string& split, int64_t number) {
  return core::format("{}-{:06}.tar", split, number);
}

std::vector<std::string> archives_in(const std::string& directory) {
  std::vector<std::string> paths;
  std::vector<core::DirectoryEntry> entries;
  if (const int error = core::posix_file_system().list(directory, entries); error != 0) {
    throw core::errno_error(error, "list", core::printable(directory), core::ErrorKind::no_input);
  }
  for (const core::DirectoryEntry& entry : entries) {
    if (entry.name[0] != '.' && fs::path(entry.name).extension() == ".tar")
      paths.push_back(directory + "/" + entry.name);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<std::string> shards_in(const std::string& directory, const std::string& split) {
  std::vector<std::string> paths = archives_in(directory);
  const auto of_another_split = [&](const std::string& path) {
    const std::string rest = path.substr(directory.size() + 1);
    if (rest == split + ".tar") return false;
    const bool numbered = rest.compare(0, split.size(), split) == 0 &&
                          (rest[split.size()] == '-' || rest[split.size()] == '_') &&
                          std::isdigit(static_cast<unsigned char>(rest[split.size() + 1])) != 0;
    return !numbered;
  };
  paths.erase(std::remove_if(paths.begin(), paths.end(), of_another_split), paths.end());
  return paths;
}

}  // namespace stoker::data
