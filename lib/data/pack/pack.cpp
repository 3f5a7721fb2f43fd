// SPDX-License-Identifier: Apache-2.0
#include "data/pack/pack.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/file.h"
#include "data/pack/pack_split.h"
#include "data/shard/shard_scan.h"

namespace stoker::data {
namespace {

/// Whether all shards of a complete split are there, by their indexes and sizes.
bool is_all_there(const std::string& directory, const std::string& split, const PackedSplit& packed) {
  int64_t images = 0;
  for (int64_t number = 0; number < packed.shards; ++number) {
    const auto index = index_of_finished(directory + "/" + shard_file_name(split, number));
    if (!index) return false;
    images += static_cast<int64_t>(index->entries.size());
  }
  return images == packed.images;
}

/// Decides about what stands in the folder already: complete splits of the same classes stay, unfinished ones
/// are continued or replaced.
PackManifest manifest_to_continue(const std::vector<SplitToPack>& splits, const PackSettings& settings) {
  const std::string directory = core::printable(settings.directory);
  PackManifest manifest = read_pack_manifest(settings.directory).value_or(PackManifest());
  bool any_complete = false;
  for (const auto& [name, packed] : manifest) any_complete = any_complete || packed.complete;
  const auto refuse = [&](const std::string& what) {
    throw core::Error(core::ErrorKind::config, directory + " holds a pack of " + what,
                      "pack into another folder, or remove this one first");
  };
  if (any_complete && read_classes_file(settings.directory) != splits.front().source->class_names()) {
    refuse("data with other classes");
  }
  for (const SplitToPack& split : splits) {
    const std::string name = core::printable(split.name);
    const auto known = manifest.find(split.name);
    if (known == manifest.end() && !shards_in(settings.directory, split.name).empty()) {
      throw core::Error(core::ErrorKind::cannot_create,
                        core::format("{} holds shards of a split '{}' that were not packed here", directory, name),
                        "pack into another folder");
    }
    if (known == manifest.end() || known->second.identity == pack_identity(split, settings)) continue;
    if (known->second.complete) {
      refuse(core::format("other data or with other settings (split '{}')", name));
    }
    core::log_warning("the unfinished pack of split '{}' in {} is of other data or settings: it is replaced", name,
                      directory);
  }
  if (!any_complete) write_classes_file(settings.directory, splits.front().source->class_names());
  return manifest;
}

/// Shards beyond the last one, of an unfinished pack that was replaced.
void remove_surplus(const std::string& directory, const std::string& split, int64_t shards) {
  for (const std::string& path : shards_in(directory, split)) {
    if (path < directory + "/" + shard_file_name(split, shards)) continue;
    std::remove(index_path_of(path).c_str());
    std::remove(path.c_str());
  }
}

}  // namespace

PackReport pack(const std::vector<SplitToPack>& splits, const PackSettings& settings,
                const std::function<void(const PackProgress&)>& on_progress) {
  core::make_directories(settings.directory);
  const core::LockFile lock(settings.directory + "/.lock", "folder", "wait for it, stop it, or use another folder");
  PackManifest manifest = manifest_to_continue(splits, settings);
  remove_unfinished_shards(settings.directory);
  PackJob job{settings, on_progress, {}, {}};
  job.report.was_complete = true;
  for (const SplitToPack& split : splits) job.progress.images_total += split.source->size();
  for (const SplitToPack& split : splits) {
    PackedSplit& packed = manifest[split.name];
    if (packed.complete && is_all_there(settings.directory, split.name, packed)) {
      job.report.bad_images += packed.bad_images;
      job.report.kept_shards += packed.shards;
      job.progress.images_done += split.source->size();
      job.progress.bytes_written += packed.bytes;
    } else {
      job.report.was_complete = false;
      packed = PackedSplit();
      packed.identity = pack_identity(split, settings);
      write_pack_manifest(settings.directory, manifest);
      packed = pack_split(split, job);
      remove_surplus(settings.directory, split.name, packed.shards);
      write_pack_manifest(settings.directory, manifest);
    }
    job.report.images += packed.images;
    job.report.shards += packed.shards;
    job.report.bytes += packed.bytes;
  }
  return job.report;
}

// Looking at packed shards as a whole: indexes that are missing, and whether everything is as it was written.

namespace {

std::vector<std::string> archives_of(const std::string& directory) {
  std::vector<std::string> paths = archives_in(directory);
  if (!paths.empty()) return paths;
  throw core::Error(core::ErrorKind::no_input, core::printable(directory) + " holds no shards",
                    "a shard is a file called <split>-000000.tar");
}

ShardLabels labels_of(const std::string& directory) {
  return ShardLabels(read_classes_file(directory).value_or(std::vector<std::string>()));
}

/// "" or how an index differs from what the archive holds.
std::string difference(const ShardIndex& index, const ShardIndex& found) {
  if (index.shard_bytes != found.shard_bytes) {
    return core::format("has {} bytes, its index gives {}", found.shard_bytes, index.shard_bytes);
  }
  if (index.entries.size() != found.entries.size()) {
    return core::format("holds {} images, its index gives {}", found.entries.size(), index.entries.size());
  }
  for (size_t i = 0; i < index.entries.size(); ++i) {
    const ShardEntry &a = index.entries[i], &b = found.entries[i];
    if (a.offset != b.offset || a.size != b.size || a.label != b.label || index.name(i) != found.name(i)) {
      return core::format("image {} ({}) differs from its index entry", i, core::printable(found.name(i)));
    }
  }
  if (!index.shard_digest.empty() && index.shard_digest != found.shard_digest) {
    return "is damaged: its digest is not that of its index";
  }
  return "";
}

ShardIndex read_whole(const std::string& path, const ShardLabels& labels, ScanNotes& notes) {
  const FileBytes file(path);
  ShardIndex index = scan_shard(file, labels, notes);
  index.shard_digest = digest_of(file);
  return index;
}

/// "" or what is wrong with one shard.
std::string verify_shard(const std::string& path, const ShardLabels& labels, ScanNotes& notes, VerifyReport& report) {
  try {
    const ShardIndex found = read_whole(path, labels, notes);
    report.images += static_cast<int64_t>(found.entries.size());
    report.bytes += found.shard_bytes;
    ++report.shards;
    if (!core::file_exists(index_path_of(path))) {
      notes.count("shards without an index", path);
      return "";
    }
    const std::string problem = difference(read_shard_index(index_path_of(path)), found);
    return problem.empty() ? "" : core::printable(path) + " " + problem;
  } catch (const core::Error& error) {
    if (error.kind() != core::ErrorKind::data) throw;
    return error.what();
  }
}

}  // namespace

IndexReport write_missing_indexes(const std::string& directory,
                                  const std::function<void(const std::string&)>& on_shard) {
  const std::vector<std::string> paths = archives_of(directory);
  const core::LockFile lock(directory + "/.lock", "folder", "wait for it, or stop it");
  const ShardLabels labels = labels_of(directory);
  IndexReport report;
  ScanNotes notes;
  for (const std::string& path : paths) {
    on_shard(path);
    const std::optional<ShardIndex> present = index_of_finished(path);
    const ShardIndex found = read_whole(path, labels, notes);
    if (present) {
      if (const std::string problem = difference(*present, found); !problem.empty()) {
        throw core::Error(core::ErrorKind::data, core::printable(path) + " " + problem,
                          "get the archive again; if the archive is right, remove its index first");
      }
      ++report.kept;
      continue;
    }
    core::write_file_atomically(index_path_of(path), shard_index_text(found), /*durable=*/true);
    ++report.written;
  }
  report.notes = notes.lines();
  return report;
}

VerifyReport verify_pack(const std::string& directory, const std::function<void(const std::string&)>& on_shard) {
  VerifyReport report;
  ScanNotes notes;
  const ShardLabels labels = labels_of(directory);
  for (const std::string& path : archives_of(directory)) {
    on_shard(path);
    if (std::string problem = verify_shard(path, labels, notes, report); !problem.empty()) {
      report.problems.push_back(std::move(problem));
    }
  }
  for (const auto& [name, packed] : read_pack_manifest(directory).value_or(PackManifest())) {
    const std::vector<std::string> shards = shards_in(directory, name);
    const std::string split = core::printable(name);
    if (!packed.complete) report.problems.push_back(core::format("split '{}' is not packed to its end", split));
    if (packed.complete && static_cast<int64_t>(shards.size()) != packed.shards) {
      report.problems.push_back(
          core::format("split '{}' has {} shards, pack.json gives {}", split, shards.size(), packed.shards));
    }
  }
  report.notes = notes.lines();
  return report;
}

}  // namespace stoker::data
