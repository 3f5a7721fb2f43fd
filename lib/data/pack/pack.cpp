// SPDX-License-Identifier: Apache-2.0
#include "data/pack/pack.h"

#include <cstdio>
#include <optional>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/file.h"
#include "data/pack/pack_split.h"
#include "data/pack/shard_writer.h"

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
/// are gone on with or replaced.
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

}  // namespace stoker::data
