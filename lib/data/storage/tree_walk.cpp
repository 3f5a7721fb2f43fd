// SPDX-License-Identifier: Apache-2.0
#include "data/storage/tree_walk.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "core/error.h"
#include "core/format.h"
#include "core/open_retrying.h"
#include "core/system/stop_signal.h"
#include "data/storage/byte_reader.h"

namespace stoker::data {
namespace {

constexpr std::array kImageExtensions = {"jpg", "jpeg", "jpe", "jfif", "png", "bmp", "dib", "webp", "tif", "tiff",
                                         "gif", "pbm",  "pgm", "ppm",  "pnm", "pam", "jp2", "j2k",  "jpc", "jpx"};
constexpr std::array kSoundExtensions = {"wav", "flac", "ogg", "mp3"};
constexpr std::array kVideoExtensions = {"mp4", "m4v", "mov", "avi", "mkv", "webm"};
// Files that lie beside images and are none. Every other file is treated as an image: its content decides.
constexpr std::array kOtherExtensions = {
    "txt",  "json", "jsonl", "csv",  "tsv", "xml", "yaml", "yml", "md",  "html", "htm",    "pdf", "py",
    "mat",  "npy",  "npz",   "pkl",  "h5",  "zip", "gz",   "tar", "db",  "ini",  "log",    "lnk", "sha256",
    "md5",  "aae",  "xmp",   "thm",  "pp3", "mp4", "mov",  "avi", "mkv", "webm", "3gp",    "m4v", "mpg",
    "mpeg", "wmv",  "mts",   "m2ts", "flv", "lrv", "mp3",  "m4a", "wav", "url",  "desktop"};
// Leftovers of browsers and editors, whatever they hold.
constexpr std::array kLeftovers = {"part",        "crdownload", "download", "partial", "filepart", "opdownload",
                                   "fdmdownload", "aria2",      "tmp",      "temp",    "bak",      "orig",
                                   "old",         "swp",        "!sync",    "!qb",     "!ut"};
// Cameras' own formats: what a TIFF reader sees of them is a preview.
constexpr std::array kRawExtensions = {"cr2", "cr3", "crw", "nef", "nrw", "arw", "srf", "sr2", "dng", "orf", "rw2",
                                       "raf", "pef", "srw", "rwl", "3fr", "fff", "iiq", "x3f", "erf", "kdc", "mrw"};
// Thumbnails, recycle bins and forks of NAS boxes and systems.
constexpr std::array kSystemFolders = {"@eadir",      "__macosx",
                                       "#recycle",    "#snapshot",
                                       "@recycle",    "@recently-snapshot",
                                       "@tmp",        "@sharebin",
                                       "recycler",    "$recycle.bin",
                                       "recycled",    "system volume information",
                                       "_gsdata_",    "lost+found",
                                       "__pycache__", "network trash folder",
                                       "@__thumb",    "@__qini",
                                       "~snapshot",   "temporary items",
                                       "_vti_cnf",    "thevolumesettingsfolder",
                                       "@thumb",      "@trash",
                                       "!sync",       "canonmsc"};
// Thumbnails that NAS boxes and media players put beside images.
constexpr std::array kThumbnails = {"synofile_thumb_", "synophoto_thumb_", "albumart_{", "albumartsmall."};

std::string lower_extension(const std::string& path) {
  const std::string name = path.substr(path.find_last_of('/') + 1);  // npos + 1 is 0
  const auto dot = name.find_last_of('.');
  if (dot == std::string::npos || dot == 0) return "";
  return core::lower_case(name.substr(dot + 1));
}

template <size_t kCount>
bool is_one_of(const std::string& word, const std::array<const char*, kCount>& words) {
  return std::any_of(words.begin(), words.end(), [&](const char* other) { return word == other; });
}

std::string joined(const std::string& directory, const std::string& name) {
  if (directory.empty()) return name;
  if (name.empty()) return directory;
  return directory.back() == '/' ? directory + name : directory + "/" + name;
}

std::vector<std::string> sorted_names(const std::string& directory) {
  const int fd = core::open_retrying(directory.c_str(), O_RDONLY | O_DIRECTORY);
  if (fd < 0) throw core::errno_error(errno, "list folder", core::printable(directory), core::ErrorKind::io);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(fd), ::closedir);
  if (!stream) {
    const int error_number = errno;
    ::close(fd);
    throw core::errno_error(error_number, "list folder", core::printable(directory), core::ErrorKind::io);
  }
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(stream.get());
    if (entry == nullptr && errno == EINTR) continue;
    if (entry == nullptr) break;
    if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0)
      names.emplace_back(entry->d_name);
  }
  if (errno != 0) throw core::errno_error(errno, "list folder", core::printable(directory), core::ErrorKind::io);
  std::sort(names.begin(), names.end());
  return names;
}

bool is_leftover(const std::string& name) {
  const bool is_of_emacs = name.size() > 2 && name.front() == '#' && name.back() == '#';
  return name.back() == '~' || is_of_emacs || core::ends_with(name, ":Zone.Identifier") ||
         core::ends_with(name, "_original") ||  // as exiftool calls what it has changed
         is_one_of(lower_extension(name), kLeftovers);
}

/// Whether a file without an image's name holds a picture of any format; true where that cannot be decided.
bool holds_picture(const std::string& path) {
  const int fd = core::open_retrying(path.c_str(), O_RDONLY | O_NONBLOCK);
  if (fd < 0) return true;
  std::array<uint8_t, 132> first{};
  const ssize_t got = ::read(fd, first.data(), first.size());
  ::close(fd);
  return got < 0 || is_picture({first.data(), static_cast<uint64_t>(got)});
}

bool is_thumbnail(const std::string& name) {
  const std::string word = core::lower_case(name);
  return std::any_of(kThumbnails.begin(), kThumbnails.end(),
                     [&](const char* begin) { return word.rfind(begin, 0) == 0; });
}

/// Windows Media Player puts Folder.jpg beside its album art; elsewhere it may be anybody's picture.
bool is_album_folder(const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(),
                     [](const std::string& name) { return core::lower_case(name).rfind("albumart", 0) == 0; });
}

/// Smaller copies that Apple's Photos keeps in its library.
bool is_inside_photo_library(const std::string& directory) {
  constexpr const char* kResources = ".photoslibrary/resources";
  return core::ends_with(core::lower_case(directory), kResources);
}

FileStamp stamp_from(const struct stat& info) {
  return {info.st_size, int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec};
}

}  // namespace

void ScanNotes::count(const std::string& what, const std::string& path) {
  Tally& tally = tallies_[what];
  if (tally.count++ == 0) tally.first = path;
}

std::vector<std::string> ScanNotes::lines() const {
  std::vector<std::string> lines;
  for (const auto& [what, tally] : tallies_) {
    lines.push_back(
        core::format("{}: {} (the first: {})", what, core::count_text(tally.count), core::printable(tally.first)));
  }
  lines.insert(lines.end(), lines_.begin(), lines_.end());
  return lines;
}

std::vector<std::string> names_in(const std::string& directory) {
  return is_directory(directory) ? sorted_names(directory) : std::vector<std::string>();
}

bool has_image_name(const std::string& name) { return is_one_of(lower_extension(name), kImageExtensions); }

bool has_sound_name(const std::string& name) { return is_one_of(lower_extension(name), kSoundExtensions); }

bool has_video_name(const std::string& name) { return is_one_of(lower_extension(name), kVideoExtensions); }

bool has_sample_name(const std::string& name) {
  return has_image_name(name) || has_sound_name(name) || has_video_name(name);
}

bool most_are_called(bool (*has_name)(const std::string& name), int64_t count,
                     const std::function<std::string_view(int64_t index)>& name) {
  int64_t called = 0;
  for (int64_t i = 0; i < count; ++i) called += has_name(std::string(name(i))) ? 1 : 0;
  return 2 * called > count;
}

std::vector<std::string> image_names_in(const std::string& directory) {
  std::vector<std::string> names;
  for (std::string& name : sorted_names(directory)) {
    if (name[0] != '.' && has_image_name(name)) names.push_back(std::move(name));
  }
  return names;
}

FileStamp stamp_of(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) ? stamp_from(info) : FileStamp{};
}

bool is_directory(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool is_system_folder(const std::string& name) {
  const std::string word = core::lower_case(name);
  const bool is_found = word.size() == 9 && word.rfind("found.", 0) == 0 &&  // of chkdsk: found.000, found.001
                        word.find_first_not_of("0123456789", 6) == std::string::npos;
  const bool is_numbered = word.rfind("#recycle-", 0) == 0 && word.size() > 9 &&
                           word.find_first_not_of("0123456789", 9) == std::string::npos;
  const bool is_of_synology = word.rfind("@syno", 0) == 0;
  const bool is_of_lightroom = core::ends_with(word, ".lrdata");  // previews
  return is_found || is_numbered || is_of_synology || is_of_lightroom || is_one_of(word, kSystemFolders);
}

std::vector<std::string> TreeWalker::folders_in(const std::string& directory) {
  std::vector<std::string> folders;
  for (const std::string& name : sorted_names(directory)) {
    const std::string path = joined(directory, name);
    struct stat link {};
    if (name[0] == '.') continue;
    if (is_system_folder(name)) {
      notes_.count("skipped folders of systems and NAS boxes", path);
      continue;
    }
    if (::lstat(path.c_str(), &link) == 0 && S_ISLNK(link.st_mode) && !follow_symlinks_) {
      notes_.count("skipped symbolic links, because of --no-follow-symlinks", path);
    } else if (is_directory(path)) {
      folders.push_back(name);
    } else {
      notes_.count("skipped files beside the class folders", path);
    }
  }
  return folders;
}

bool TreeWalker::claim(const std::string& directory) {
  struct stat info {};
  if (::stat(directory.c_str(), &info) != 0) {
    throw core::errno_error(errno, "list folder", core::printable(directory), core::ErrorKind::io);
  }
  return visited_.insert({static_cast<uint64_t>(info.st_dev), static_cast<uint64_t>(info.st_ino)}).second;
}

void TreeWalker::claim_with_ancestors(const std::string& directory) {
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(directory.c_str(), nullptr), ::free);
  if (!real) throw core::errno_error(errno, "list folder", core::printable(directory), core::ErrorKind::io);
  for (std::string path = real.get(); !path.empty(); path.resize(path.find_last_of('/'))) claim(path);
}

const TreeWalker::FileVisitor* TreeWalker::Visitors::of_name(const std::string& name) const {
  const FileVisitor& visitor = has_sound_name(name) ? sounds : videos;
  return visitor && (has_sound_name(name) || has_video_name(name)) ? &visitor : nullptr;
}

void TreeWalker::visit_folder(const std::string& directory, const std::string& relative, const Visitors& visitors) {
  const std::string folder = joined(directory, relative);
  const std::vector<std::string> names = sorted_names(folder);
  const bool has_album_art = is_album_folder(names);
  for (const std::string& name : names) {
    core::throw_if_stopped();
    if (name[0] == '.' || name == "Thumbs.db") {
      notes_.count("skipped hidden files", joined(folder, name));
    } else if (has_album_art && core::lower_case(name) == "folder.jpg") {
      notes_.count("skipped thumbnails of NAS boxes and media players", joined(folder, name));
    } else {
      visit_entry(directory, joined(relative, name), visitors);
    }
  }
}

void TreeWalker::visit_entry(const std::string& directory, const std::string& relative, const Visitors& visitors) {
  const std::string path = joined(directory, relative);
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return;  // gone since the folder was listed
    throw core::errno_error(errno, "look at", core::printable(path), core::ErrorKind::io);
  }
  if (S_ISLNK(info.st_mode)) {
    if (!follow_symlinks_) return notes_.count("skipped symbolic links, because of --no-follow-symlinks", path);
    if (::stat(path.c_str(), &info) != 0) {
      if (is_storage_error(errno))
        throw core::errno_error(errno, "look at", core::printable(path), core::ErrorKind::io);
      notes_.count("symbolic links that lead nowhere", path);
      if (has_image_name(relative)) visitors.images(relative, FileStamp{});
      if (const FileVisitor* const visitor = visitors.of_name(relative)) (*visitor)(relative, FileStamp{});
      return;
    }
  }
  const std::string name = relative.substr(relative.find_last_of('/') + 1);
  if (S_ISDIR(info.st_mode)) {
    if (is_system_folder(name) || is_inside_photo_library(path)) {
      return notes_.count("skipped folders of systems and NAS boxes", path);
    }
    if (claim(path)) return visit_folder(directory, relative, visitors);
    return notes_.count("skipped folders that links lead to a second time", path);
  }
  if (!S_ISREG(info.st_mode)) return notes_.count("skipped pipes, sockets and devices", path);
  if (is_leftover(name)) return notes_.count("skipped leftovers of downloads and editors", path);
  if (is_thumbnail(name)) return notes_.count("skipped thumbnails of NAS boxes and media players", path);
  if (is_one_of(lower_extension(name), kRawExtensions)) {
    return notes_.count("skipped files of cameras' own formats, which are not read (convert them to JPEG or TIFF)",
                        path);
  }
  if (const FileVisitor* const visitor = visitors.of_name(name)) return (*visitor)(relative, stamp_from(info));
  if (is_one_of(lower_extension(name), kOtherExtensions) || (!has_image_name(name) && !holds_picture(path))) {
    return notes_.count("skipped files that are not images", path);
  }
  visitors.images(relative, stamp_from(info));
}

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The run of digits at `at`, without leading zeros; moves `at` behind it.
std::string_view number_at(std::string_view text, size_t& at) {
  while (at < text.size() && text[at] == '0') ++at;
  const size_t begin = at;
  while (at < text.size() && is_digit(text[at])) ++at;
  return text.substr(begin, at - begin);
}

}  // namespace

bool comes_before(std::string_view a, std::string_view b) {
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      const std::string_view first = number_at(a, i), second = number_at(b, j);
      if (first.size() != second.size()) return first.size() < second.size();
      if (first != second) return first < second;
    } else if (a[i] != b[j]) {
      return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[j]);
    } else {
      ++i;
      ++j;
    }
  }
  if (i < a.size() || j < b.size()) return i == a.size();
  return a < b;
}

namespace {

/// A file whose name continues behind `stem`; empty: there is none.
std::string file_that_continues(const std::string& folder, const std::string& stem, bool looks_deeper) {
  constexpr size_t kMostFolders = 16;
  std::vector<std::string> folders;
  for (const std::string& name : names_in(folder)) {
    const bool continues = name.size() > stem.size() + 1 && name.compare(0, stem.size(), stem) == 0 &&
                           std::string_view("_-. ").find(name[stem.size()]) != std::string_view::npos;
    if (continues && has_sample_name(name)) return folder + "/" + name;
    if (looks_deeper && folders.size() < kMostFolders && name.find('.') == std::string::npos) folders.push_back(name);
  }
  for (const std::string& name : folders) {
    const std::string found = file_that_continues(folder + "/" + name, stem, false);
    if (!found.empty()) return found;
  }
  return "";
}

}  // namespace

std::string nearest_file(const std::string& path) {
  const std::filesystem::path place(path);
  const std::string folder = place.parent_path().string(), name = place.filename().string();
  std::vector<std::string> names = names_in(folder.empty() ? "." : folder);
  names.erase(std::remove(names.begin(), names.end(), name), names.end());
  const auto same = std::find_if(names.begin(), names.end(), [&](const std::string& other) {
    return core::lower_case(other) == core::lower_case(name);
  });
  const std::string near = same != names.end() ? *same : core::nearest_name(name, names);
  if (near.empty() && !name.empty()) return file_that_continues(folder.empty() ? "." : folder, name, true);
  return near.empty() || folder.empty() ? near : folder + "/" + near;
}

std::string normalized_path(const std::string& path) {
  if (path.compare(0, 2, "./") != 0 && path.find("//") == std::string::npos && path.find("/.") == std::string::npos) {
    return path;
  }
  return std::filesystem::path(path).lexically_normal().string();
}

}  // namespace stoker::data
