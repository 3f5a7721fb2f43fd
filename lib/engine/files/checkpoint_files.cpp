// SPDX-License-Identifier: Apache-2.0
#include "engine/files/checkpoint_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
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
constexpr const char* kStepPrefix = "step-";
constexpr const char* kTemporaryPrefix = ".tmp-";

/// Updates of a name like step-00001234, or -1.
int64_t updates_of(const std::string& name) {
  const std::string prefix = kStepPrefix;
  if (name.compare(0, prefix.size(), prefix) != 0 || name.size() < prefix.size() + 8) return -1;
  if (name.find_first_not_of("0123456789", prefix.size()) != std::string::npos || name.size() > 23) return -1;
  return std::atoll(name.c_str() + prefix.size());
}

std::string manifest_text(const Manifest& manifest) {
  core::Json files = core::Json::object();
  for (const auto& [name, record] : manifest.files)
    files[name] = {{"bytes", record.bytes}, {"xxh3_128", record.digest}};
  const core::Json json = {
      {"format", kFormatVersion}, {"updates", manifest.updates}, {"files", files}, {"extra", manifest.extra}};
  return json.dump(1) + "\n";
}

[[noreturn]] void broken(const std::string& path, const std::string& cause) {
  throw Error(ErrorKind::data, "checkpoint " + core::printable(path) + ": " + cause,
              "use another checkpoint (--resume auto takes the newest whole one)");
}

/// JSON would turn 1.5, true or -1 into a count.
int64_t count_of(const core::Json& value, const std::string& path) {
  constexpr uint64_t kMax = std::numeric_limits<int64_t>::max();
  if (!value.is_number_unsigned() || value.get<uint64_t>() > kMax) {
    broken(path, "its manifest has a number that is not a count");
  }
  return value.get<int64_t>();
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
      manifest.files[name] = {count_of(record.at("bytes"), path), record.at("xxh3_128").get<std::string>()};
    }
    return manifest;
  } catch (const core::Json::exception& error) {
    broken(path, std::string("its manifest is not ours: ") + error.what());
  }
}

void verify_file(const std::string& checkpoint, const std::string& name, const FileRecord& record) {
  const std::string path = checkpoint + "/" + name, shown = core::printable(name);
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) broken(checkpoint, shown + " cannot be opened: " + std::strerror(errno));
  struct stat info {};
  const bool regular = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  core::Hasher hasher;
  std::vector<char> block(1 << 20);
  ssize_t got = 0;
  while (regular && (got = ::read(fd, block.data(), block.size())) > 0)
    hasher.add(block.data(), static_cast<size_t>(got));
  ::close(fd);
  if (!regular) broken(checkpoint, shown + " is not a regular file");
  if (got < 0) broken(checkpoint, shown + " cannot be read");
  if (info.st_size != record.bytes) {
    broken(checkpoint, format("{} is truncated or longer: it has {} bytes, the manifest says {}", shown, info.st_size,
                              record.bytes));
  }
  if (hasher.hex() != record.digest) broken(checkpoint, shown + " is damaged: its digest differs from the manifest's");
}

/// Moves `from` over `to`; when `to` exists the two change places in one step and the old one is removed.
void move_into_place(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return;
  if (errno != ENOTEMPTY && errno != EEXIST) throw core::errno_error(errno, "rename", from, ErrorKind::io);
#ifndef RENAME_EXCHANGE
  constexpr unsigned RENAME_EXCHANGE = 2;
#endif
  if (::syscall(SYS_renameat2, AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) != 0) {
    // The file system cannot exchange: the older checkpoints cover the moment in which this one is missing.
    fs::remove_all(to);
    if (::rename(from.c_str(), to.c_str()) != 0) throw core::errno_error(errno, "rename", from, ErrorKind::io);
  }
}

}  // namespace

FileRecord write_checkpoint_file(const std::string& path, std::string_view content) {
  core::CheckedWriter writer(path);
  writer.write(content.data(), content.size());
  writer.finish();
  return {static_cast<int64_t>(content.size()), core::hash_hex(content)};
}

Manifest read_manifest(const std::string& path) {
  return parse_manifest(core::read_file(path + "/" + kManifest, kMaxManifestBytes), path);
}

Manifest verify_checkpoint(const std::string& path) {
  const Manifest manifest = read_manifest(path);
  for (const auto& [name, record] : manifest.files) verify_file(path, name, record);
  return manifest;
}

CheckpointFiles::CheckpointFiles(std::string directory) : directory_(std::move(directory)) {}

std::string CheckpointFiles::path_of(int64_t updates) const {
  return format("{}/{}{:08d}", directory_, kStepPrefix, updates);
}

void CheckpointFiles::prepare() {
  core::make_directories(directory_);
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory_)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(kTemporaryPrefix, 0) == 0) fs::remove_all(entry.path(), ignored);
  }
  core::CheckedWriter probe(directory_ + "/" + kTemporaryPrefix + "probe");
  probe.write("x", 1);  // removed by its destructor, being unfinished
}

int64_t CheckpointFiles::commit(int64_t updates,
                                const std::function<std::map<std::string, FileRecord>(const std::string&)>& fill,
                                const core::Json& extra) {
  const std::string temporary = format("{}/{}{:08d}-{}", directory_, kTemporaryPrefix, updates, ::getpid());
  std::error_code ignored;
  fs::remove_all(temporary, ignored);
  if (::mkdir(temporary.c_str(), 0777) != 0) {
    throw core::errno_error(errno, "create folder", temporary, ErrorKind::io);
  }
  try {
    Manifest manifest{updates, fill(temporary), extra};
    write_checkpoint_file(temporary + "/" + kManifest, manifest_text(manifest));
    core::sync_directory(temporary);
    verify_checkpoint(temporary);
    move_into_place(temporary, path_of(updates));
    core::sync_directory(directory_);
    fs::remove_all(temporary, ignored);  // the replaced checkpoint, if there was one
    int64_t bytes = 0;
    for (const auto& [name, record] : manifest.files) bytes += record.bytes;
    return bytes;
  } catch (...) {
    fs::remove_all(temporary, ignored);
    throw;
  }
}

void CheckpointFiles::point(const std::string& name, int64_t updates) {
  const std::string temporary = directory_ + "/" + kTemporaryPrefix + name;
  ::unlink(temporary.c_str());
  const std::string target = fs::path(path_of(updates)).filename().string();
  if (::symlink(target.c_str(), temporary.c_str()) != 0 ||
      ::rename(temporary.c_str(), (directory_ + "/" + name).c_str()) != 0) {
    throw core::errno_error(errno, "point link", directory_ + "/" + name, ErrorKind::io);
  }
}

int64_t CheckpointFiles::pointed(const std::string& name) const {
  std::error_code missing;
  const fs::path target = fs::read_symlink(directory_ + "/" + name, missing);
  return missing ? -1 : updates_of(target.filename().string());
}

void CheckpointFiles::prune(int64_t keep_last, const std::vector<int64_t>& keep) {
  const std::vector<int64_t> all = list();
  std::error_code ignored;
  for (size_t i = static_cast<size_t>(std::max<int64_t>(2, keep_last)); i < all.size(); ++i) {
    if (std::find(keep.begin(), keep.end(), all[i]) == keep.end()) fs::remove_all(path_of(all[i]), ignored);
  }
}

std::vector<int64_t> CheckpointFiles::list() const {
  std::vector<int64_t> found;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(directory_, missing)) {
    const int64_t updates = updates_of(entry.path().filename().string());
    if (updates >= 0 && !entry.is_symlink()) found.push_back(updates);
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

std::string CheckpointFiles::newest_verified() const {
  for (const int64_t updates : list()) {
    try {
      verify_checkpoint(path_of(updates));
      return path_of(updates);
    } catch (const Error& error) {
      core::log_warning("{}; going back to the checkpoint before it", error.what());
    }
  }
  return "";
}

}  // namespace stoker::engine
