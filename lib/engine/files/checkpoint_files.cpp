// SPDX-License-Identifier: Apache-2.0
#include "engine/files/checkpoint_files.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>

#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/system/file.h"

namespace stoker::engine {
namespace {

namespace fs = std::filesystem;
using core::Error;
using core::ErrorKind;
using core::format;

constexpr int64_t kFormatVersion = 1;
constexpr uint64_t kMaxManifestBytes = 16 << 20;
constexpr const char* kManifest = "manifest.json";
constexpr const char* kAsSaved = "as_saved";  // of the manifest's extra: records of files that were replaced since
constexpr const char* kStepPrefix = "step-";
constexpr const char* kTemporaryPrefix = ".tmp-";
constexpr const char* kAsidePrefix = "superseded-step-";

/// Updates of a name like step-00001234, or -1.
int64_t updates_of(const std::string& name) {
  const std::string prefix = kStepPrefix;
  if (name.compare(0, prefix.size(), prefix) != 0 || name.size() < prefix.size() + 8) return -1;
  if (name.find_first_not_of("0123456789", prefix.size()) != std::string::npos || name.size() > 23) return -1;
  return std::atoll(name.c_str() + prefix.size());
}

core::Json record_json(const FileRecord& record) { return {{"bytes", record.bytes}, {"xxh3_128", record.digest}}; }

std::string manifest_text(const Manifest& manifest) {
  core::Json files = core::Json::object();
  for (const auto& [name, record] : manifest.files) files[name] = record_json(record);
  const core::Json json = {
      {"format", kFormatVersion}, {"updates", manifest.updates}, {"files", files}, {"extra", manifest.extra}};
  return core::json_page(json);
}

[[noreturn]] void broken(const std::string& path, const std::string& cause) {
  throw Error(ErrorKind::data, "checkpoint " + core::printable(path) + ": " + cause,
              "name another one below checkpoints/ (--which last); a run that continues takes the newest whole one");
}

/// JSON would turn 1.5, true or -1 into a count.
int64_t count_of(const core::Json& value, const std::string& path) {
  constexpr uint64_t kMax = std::numeric_limits<int64_t>::max();
  if (!value.is_number_unsigned() || value.get<uint64_t>() > kMax) {
    broken(path, "its manifest has a number that is not a count");
  }
  return value.get<int64_t>();
}

FileRecord record_of(const core::Json& json, const std::string& path) {
  return {count_of(json.at("bytes"), path), json.at("xxh3_128").get<std::string>()};
}

/// Keys of the manifest are files of the checkpoint's own folder, and of nowhere else.
bool is_file_name(const std::string& name) {
  return !name.empty() && name[0] != '.' && name.find_first_of(std::string("/\0", 2)) == std::string::npos;
}

Manifest parse_manifest(const std::string& text, const std::string& path) {
  const core::Json json = core::parse_json(text, path + "/" + kManifest);
  try {
    if (const int64_t written = count_of(json.at("format"), path); written > kFormatVersion) {
      broken(path, format("written in format {} by a newer version of this program", written));
    }
    Manifest manifest;
    manifest.updates = count_of(json.at("updates"), path);
    manifest.extra = json.at("extra");
    for (const auto& [name, record] : json.at("files").items()) {
      if (!is_file_name(name)) {
        broken(path, "its manifest names a file outside the checkpoint: " + core::printable(name));
      }
      manifest.files[name] = record_of(record, path);
    }
    return manifest;
  } catch (const core::Json::exception& error) {
    broken(path, "its manifest was not written by this program: " + core::problem_text(error));
  }
}

/// A file that is missing or of the wrong kind is damage; whatever else keeps it from being read is not.
void require_readable(int error_number, const std::string& checkpoint, const std::string& shown) {
  if (error_number == 0) return;
  if (error_number == EINVAL || error_number == EISDIR) broken(checkpoint, shown + " is not a regular file");
  if (error_number == ENOENT || error_number == ELOOP) {
    broken(checkpoint, shown + " cannot be opened: " + std::strerror(error_number));
  }
  throw core::errno_error(error_number, "read", core::printable(checkpoint) + "/" + shown, ErrorKind::io);
}

void verify_file(const std::string& checkpoint, const std::string& name, const FileRecord& record,
                 core::FileSystem& files) {
  const std::string shown = core::printable(name);
  std::unique_ptr<core::File> file;
  require_readable(files.open(checkpoint + "/" + name, core::Links::refuse, file), checkpoint, shown);
  core::Hasher hasher;
  std::vector<char> block(1 << 20);
  uint64_t bytes = 0, got = 0;
  do {
    require_readable(file->read(block.data(), block.size(), got), checkpoint, shown);
    hasher.add(block.data(), got);
    bytes += got;
  } while (got > 0);
  if (bytes != static_cast<uint64_t>(record.bytes)) {
    broken(checkpoint,
           format("{} is truncated or longer: it has {} bytes, the manifest lists {}", shown, bytes, record.bytes));
  }
  if (hasher.hex() != record.digest) broken(checkpoint, shown + " is damaged: its digest differs from the manifest's");
}

void copy_file(const std::string& from, const std::string& to, core::FileSystem& files) {
  std::unique_ptr<core::File> file;
  const auto require_read = [&](int error_number) {
    if (error_number != 0) throw core::errno_error(error_number, "read", core::printable(from), ErrorKind::io);
  };
  require_read(files.open(from, core::Links::refuse, file));
  core::CheckedWriter writer(to, files);
  std::vector<char> block(1 << 20);
  uint64_t got = 0;
  do {
    require_read(file->read(block.data(), block.size(), got));
    writer.write(block.data(), got);
  } while (got > 0);
  writer.finish();
}

/// A new file must read back as it was written: if not, the storage failed, not the content.
void verify_save(const std::string& folder, core::FileSystem& files) {
  try {
    verify_checkpoint(folder, files);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data && error.kind() != ErrorKind::no_input) throw;
    throw Error(ErrorKind::io, std::string("a save does not read back as it was written: ") + error.what(),
                "check the storage; older checkpoints are whole");
  }
}

/// Throws for a call that failed.
void require(int error_number, const char* action, const std::string& path) {
  if (error_number != 0) throw core::output_error(error_number, action, path, ErrorKind::io);
}

/// For what should go and does no harm while it stays.
void warn_if_left(int error_number, const std::string& path) {
  if (error_number == 0) return;
  core::log_warning("cannot remove {}: {}", core::printable(path), std::strerror(error_number));
}

/// Moves `from` over `to`; when `to` exists the two change places in one step and the old one is removed: a checkpoint,
/// or a file or link of that name.
void move_into_place(const std::string& from, const std::string& to, core::FileSystem& files) {
  const int error_number = files.rename(from, to);
  const bool is_taken = error_number == ENOTEMPTY || error_number == EEXIST || error_number == ENOTDIR;
  if (!is_taken) return require(error_number, "rename", from);
  const int exchanged = files.exchange(from, to);
  if (exchanged != EINVAL && exchanged != ENOSYS) return require(exchanged, "replace", to);
  // The file system cannot exchange: older checkpoints cover the moment in which this one has no name.
  const std::string replaced = from + "-replaced";
  require(core::remove_tree(replaced, files), "remove", replaced);
  require(files.rename(to, replaced), "rename", to);
  if (const int failed = files.rename(from, to); failed != 0) {
    files.rename(replaced, to);
    require(failed, "rename", from);
  }
  warn_if_left(core::remove_tree(replaced, files), replaced);
}

}  // namespace

FileRecord write_checkpoint_file(const std::string& path, std::string_view content, core::FileSystem& files) {
  core::CheckedWriter writer(path, files);
  writer.write(content.data(), content.size());
  writer.finish();
  return {static_cast<int64_t>(content.size()), core::hash_hex(content)};
}

Manifest read_manifest(const std::string& path, core::FileSystem& files) {
  return parse_manifest(core::read_file(path + "/" + kManifest, kMaxManifestBytes, files), path);
}

std::string checkpoint_digest(const std::string& path, core::FileSystem& files) {
  const std::string text = core::read_file(path + "/" + kManifest, kMaxManifestBytes, files);
  if (text.find(kAsSaved) == std::string::npos) return core::hash_hex(text);
  Manifest manifest = parse_manifest(text, path);
  try {
    const core::Json replaced = manifest.extra.value(kAsSaved, core::Json::object());
    for (const auto& [name, record] : replaced.items()) manifest.files[name] = record_of(record, path);
    manifest.extra.erase(kAsSaved);
  } catch (const core::Json::exception& error) {
    broken(path, "its manifest was not written by this program: " + core::problem_text(error));
  }
  return core::hash_hex(manifest_text(manifest));
}

bool was_replaced(const Manifest& manifest, const std::string& name) {
  const auto as_saved = manifest.extra.find(kAsSaved);
  return as_saved != manifest.extra.end() && as_saved->contains(name);
}

void replace_in_checkpoint(const std::string& path, const std::string& name, std::string_view content,
                           core::FileSystem& files) {
  const fs::path folder = fs::canonical(path);  // best and last are links
  const Manifest before = verify_checkpoint(folder.string(), files);
  core::Json extra = before.extra;
  core::Json& as_saved = extra[kAsSaved];
  if (!as_saved.contains(name)) as_saved[name] = record_json(before.files.at(name));
  const auto fill = [&](const std::string& made) {
    std::map<std::string, FileRecord> records = before.files;
    for (const auto& [file, record] : before.files) {
      if (file != name) copy_file(folder.string() + "/" + file, made + "/" + file, files);
    }
    records[name] = write_checkpoint_file(made + "/" + name, content, files);
    return records;
  };
  CheckpointFiles(folder.parent_path().string(), files).commit(before.updates, fill, extra, folder.filename().string());
}

Manifest verify_checkpoint(const std::string& path, core::FileSystem& files) {
  const Manifest manifest = read_manifest(path, files);
  for (const auto& [name, record] : manifest.files) verify_file(path, name, record, files);
  return manifest;
}

CheckpointFiles::CheckpointFiles(std::string directory, core::FileSystem& files)
    : directory_(std::move(directory)), files_(files) {}

std::string CheckpointFiles::path_of(int64_t updates) const {
  return format("{}/{}{:08d}", directory_, kStepPrefix, updates);
}

void CheckpointFiles::prepare() {
  core::make_directories(directory_, files_);
  std::vector<core::DirectoryEntry> entries;
  require(files_.list(directory_, entries), "list", directory_);
  for (const core::DirectoryEntry& entry : entries) {
    if (entry.name.rfind(kTemporaryPrefix, 0) != 0) continue;
    const std::string path = directory_ + "/" + entry.name;
    warn_if_left(core::remove_tree(path, files_), path);
  }
  core::CheckedWriter probe(directory_ + "/" + kTemporaryPrefix + "probe", files_);
  probe.write("x", 1);  // removed by its destructor, being unfinished
}

Committed CheckpointFiles::commit(int64_t updates,
                                  const std::function<std::map<std::string, FileRecord>(const std::string&)>& fill,
                                  const core::Json& extra, const std::string& name) {
  const std::string temporary = format("{}/{}{:08d}-{}", directory_, kTemporaryPrefix, updates, ::getpid());
  core::remove_tree(temporary, files_);
  require(files_.make_directory(temporary), "create folder", temporary);
  bool is_placed = false;
  try {
    Manifest manifest{updates, fill(temporary), extra};
    Committed committed;
    committed.digest = write_checkpoint_file(temporary + "/" + kManifest, manifest_text(manifest), files_).digest;
    core::sync_directory(temporary, files_);
    verify_save(temporary, files_);
    move_into_place(temporary, name.empty() ? path_of(updates) : directory_ + "/" + name, files_);
    is_placed = true;
    core::sync_directory(directory_, files_);
    // The replaced checkpoint, if there was one.
    warn_if_left(core::remove_tree(temporary, files_), temporary);
    for (const auto& [name, record] : manifest.files) committed.bytes += record.bytes;
    return committed;
  } catch (...) {
    // Once placed, what has the temporary name is the replaced checkpoint: a power loss may still need it.
    if (!is_placed) core::remove_tree(temporary, files_);
    throw;
  }
}

void CheckpointFiles::point(const std::string& name, int64_t updates) {
  const std::string temporary = directory_ + "/" + kTemporaryPrefix + name, link = directory_ + "/" + name;
  files_.remove(temporary);
  const std::string target = path_of(updates).substr(directory_.size() + 1);
  require(files_.link(target, temporary), "point link", link);
  require(files_.rename(temporary, link), "point link", link);
}

void CheckpointFiles::remove_link(const std::string& name) {
  const std::string link = directory_ + "/" + name;
  require(files_.remove(link), "remove link", link);
}

bool CheckpointFiles::has(int64_t updates) const { return core::file_exists(path_of(updates) + "/" + kManifest); }

bool CheckpointFiles::is_whole(int64_t updates) const {
  try {
    verify_checkpoint(path_of(updates), files_);
    return true;
  } catch (const Error& error) {
    const ErrorKind kind = error.kind();
    if (kind != ErrorKind::data && kind != ErrorKind::no_input && kind != ErrorKind::io) throw;
    return false;
  }
}

int64_t CheckpointFiles::pointed(const std::string& name) const {
  std::error_code missing;
  const fs::path target = fs::read_symlink(directory_ + "/" + name, missing);
  return missing ? -1 : updates_of(target.filename().string());
}

void CheckpointFiles::prune(int64_t keep_last, const std::vector<int64_t>& keep) {
  const std::vector<int64_t> all = list();
  bool links_are_durable = false;
  for (size_t i = static_cast<size_t>(std::max<int64_t>(2, keep_last)); i < all.size(); ++i) {
    if (std::find(keep.begin(), keep.end(), all[i]) != keep.end()) continue;
    // Or a power loss could leave a link to a checkpoint that is gone.
    if (!links_are_durable) core::sync_directory(directory_, files_);
    links_are_durable = true;
    // Under another name first: half of a checkpoint must not pass for one.
    const std::string gone = format("{}/{}pruned-{:08d}", directory_, kTemporaryPrefix, all[i]);
    core::remove_tree(gone, files_);
    const int error_number = files_.rename(path_of(all[i]), gone);
    warn_if_left(error_number != 0 ? error_number : core::remove_tree(gone, files_), path_of(all[i]));
  }
}

std::vector<int64_t> CheckpointFiles::list() const {
  std::vector<core::DirectoryEntry> entries;
  const int error_number = files_.list(directory_, entries);
  if (error_number == ENOENT || error_number == ENOTDIR) return {};
  require(error_number, "list", directory_);
  std::vector<int64_t> found;
  for (const core::DirectoryEntry& entry : entries) {
    const int64_t updates = updates_of(entry.name);
    if (updates >= 0 && !entry.is_link) found.push_back(updates);
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

std::string CheckpointFiles::set_aside(int64_t updates) {
  const std::string from = path_of(updates), to = format("{}/{}{:08d}", directory_, kAsidePrefix, updates);
  require(core::remove_tree(to, files_), "remove", to);
  require(files_.rename(from, to), "rename", from);
  return to;
}

std::string CheckpointFiles::newest_verified() const {
  for (const int64_t updates : list()) {
    try {
      verify_checkpoint(path_of(updates), files_);
      return path_of(updates);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data && error.kind() != ErrorKind::no_input) throw;
      core::log_warning("{}; going back to the checkpoint before it", error.what());
    }
  }
  return "";
}

}  // namespace stoker::engine
