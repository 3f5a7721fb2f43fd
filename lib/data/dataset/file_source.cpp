// SPDX-License-Identifier: Apache-2.0
#include "data/dataset/file_source.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <system_error>

#include "core/format.h"
#include "core/hash.h"
#include "data/bands/band_source.h"
#include "data/source.h"
#include "data/video/video_source.h"

namespace stoker::data {
namespace {

class FileSource : public LeafSource, private StoredSamples {
 public:
  FileSource(FileList files, std::vector<std::string> class_names, std::vector<std::string> target_names)
      : files_(std::move(files)) {
    class_names_ = std::move(class_names);
    target_names_ = std::move(target_names);
    files_.shrink_to_fit();
    ListFingerprint fingerprint(class_names_);
    for (int64_t i = 0; i < files_.size(); ++i) {
      fingerprint.add_sample(files_.relative_path(i), files_.stamp(i).size, files_.label(i));
    }
    if (num_targets() > 0) fingerprint.add_targets(target_names_, files_.targets(0), files_.size() * num_targets());
    for (int64_t i = 0; files_.has_regions() && i < files_.size(); ++i) {
      const RegionOfInterest region = files_.region(i);
      fingerprint.add_text(core::format("{} {} {} {}", region.left, region.top, region.width, region.height));
    }
    for (int64_t i = 0; files_.has_parts() && i < files_.size(); ++i) {
      if (const SoundPart part = files_.part(i); !part.is_whole()) fingerprint.add_text(part_text(part));
    }
    fingerprint_ = fingerprint.hex();
  }

  int64_t size() const override { return files_.size(); }
  int64_t label(int64_t index) const override { return files_.label(index); }
  void targets(int64_t index, float* out) const override {
    std::copy_n(files_.targets(index), files_.num_targets(), out);
  }
  RegionOfInterest region(int64_t index) const override { return files_.region(index); }
  std::string name(int64_t index) const override { return files_.path(index) + part_text(files_.part(index)); }
  std::string relative_name(int64_t index) const override {
    return std::string(files_.relative_path(index)) + part_text(files_.part(index));
  }
  SoundPlace place(int64_t index) const { return files_.place(index); }
  SourceMemory memory() const override { return {files_.memory_bytes(), 0}; }
  const StoredSamples* stored() const override { return this; }

  std::string read(int64_t index, std::vector<uint8_t>& buffer, SampleContent& content) const override {
    return read_head(index, std::numeric_limits<int64_t>::max(), buffer, content);
  }

  std::string read_head(int64_t index, int64_t bytes, std::vector<uint8_t>& buffer,
                        SampleContent& content) const override {
    const FileStamp stamp = files_.stamp(index);
    std::string cause = files_.read(index, bytes, buffer);
    if (!cause.empty()) return cause;
    content.bytes = buffer.data();
    content.size = static_cast<uint64_t>(std::min(stamp.size, bytes));
    return "";
  }

  int64_t stored_bytes(int64_t index) const override { return files_.stamp(index).size; }

  std::vector<int64_t> run_ends() const override { return {size()}; }

 private:
  FileList files_;
};

}  // namespace

void FileList::add(std::string_view path, int64_t label, const FileStamp& stamp) {
  entries_.push_back(
      {paths_.size(), stamp.size, stamp.modified_ns, static_cast<uint32_t>(path.size()), static_cast<int32_t>(label)});
  paths_.append(path);
}

void FileList::add(std::string_view path, const std::vector<float>& targets, const FileStamp& stamp) {
  constexpr int64_t kNoLabel = -1;
  add(path, kNoLabel, stamp);
  targets_.insert(targets_.end(), targets.begin(), targets.end());
}

void FileList::add(std::string_view path, const std::vector<float>& targets, const FileStamp& stamp,
                   const RegionOfInterest& region) {
  add(path, targets, stamp);
  regions_.push_back(region);
}

FileStamp FileList::stamp(int64_t index) const {
  const Entry& entry = entries_[static_cast<size_t>(index)];
  return {entry.size, entry.modified_ns};
}

std::string_view FileList::relative_path(int64_t index) const {
  const Entry& entry = entries_[static_cast<size_t>(index)];
  return std::string_view(paths_).substr(entry.path_at, entry.path_length);
}

std::string FileList::absolute(std::string_view relative_path) const {
  if (directory_.empty() || relative_path.substr(0, 1) == "/") return std::string(relative_path);
  std::string whole = directory_;
  if (whole.back() != '/') whole += '/';
  return whole.append(relative_path);
}

void FileList::shrink_to_fit() {
  paths_.shrink_to_fit();
  entries_.shrink_to_fit();
  targets_.shrink_to_fit();
}

void FileList::stage(const std::string& stage_dir, ScanNotes& notes) {
  if (stage_dir.empty() || entries_.empty()) return;
  std::string note;
  copies_ = StagedFiles::stage({directory_, size(), [this](int64_t i) { return relative_path(i); },
                                [this](int64_t i) { return path(i); }, [this](int64_t i) { return stamp(i); }},
                               stage_dir, note);
  notes.add_line(note);
}

std::string FileList::read(int64_t index, int64_t max_bytes, std::vector<uint8_t>& buffer) const {
  const bool has_copy =
      copies_ != nullptr &&
      read_sample_file(copies_->copy_of(relative_path(index)), stamp(index), buffer, max_bytes).empty();
  return has_copy ? "" : read_sample_file(path(index), stamp(index), buffer, max_bytes);
}

namespace {

/// Empty where it is unknown: absolute paths then stay as they are.
std::string absolute_folder_of(const FileList& files) {
  std::error_code ignored;
  return normalized_path(std::filesystem::absolute(files.absolute(""), ignored).string());
}

}  // namespace

ListedFiles::ListedFiles(const FileList& files) : files_(files), folder_(absolute_folder_of(files)) {}

int64_t ListedFiles::earlier(std::string_view path, const SoundPart& part) {
  const std::string key = key_of(path, part);
  const auto [first, is_new] = first_.emplace(core::hash64(key), files_.size());
  const bool is_same = !is_new && key_of(files_.relative_path(first->second), files_.part(first->second)) == key;
  return is_same ? first->second : -1;
}

std::string ListedFiles::key_of(std::string_view path, const SoundPart& part) const {
  std::string key = normalized_path(std::string(path));
  if (key.compare(0, folder_.size(), folder_) == 0) key.erase(0, folder_.size());
  return key + part_text(part);
}

SoundPlace FileList::place(int64_t index) const {
  return {path(index), copies_ == nullptr ? "" : copies_->copy_of(relative_path(index)), stamp(index), part(index)};
}

namespace {

std::shared_ptr<const Source> as_videos(const std::shared_ptr<const FileSource>& files,
                                        const config::DataOptions& options, int64_t views) {
  const auto place_of = [files](int64_t index) {
    SoundPlace place = files->place(index);
    return VideoPlace{std::move(place.path), std::move(place.copy), place.stamp};
  };
  return make_video_source(files, place_of, options, views);
}

/// Images, samples of many bands, sounds or videos, by what most are called.
std::shared_ptr<const Source> as_samples(FileList list, std::vector<std::string> class_names,
                                         std::vector<std::string> target_names, const config::DataOptions& options) {
  const auto name = [&](int64_t i) { return list.relative_path(i); };
  const bool sounds = most_are_called(has_sound_name, list.size(), name);
  const bool videos = most_are_called(has_video_name, list.size(), name);
  auto files = std::make_shared<const FileSource>(std::move(list), std::move(class_names), std::move(target_names));
  if (videos) return as_videos(files, options, /*views=*/1);
  if (!sounds) return as_bands(std::move(files));
  return make_sound_source(
      files, [files](int64_t index) { return files->place(index); }, options.sound);
}

}  // namespace

std::shared_ptr<const Source> make_file_source(FileList files, std::vector<std::string> class_names,
                                               const config::DataOptions& options) {
  return as_samples(std::move(files), std::move(class_names), {}, options);
}

std::shared_ptr<const Source> make_videos_of_files(FileList files, std::vector<std::string> class_names,
                                                   const config::DataOptions& options, int64_t views) {
  return as_videos(
      std::make_shared<const FileSource>(std::move(files), std::move(class_names), std::vector<std::string>()), options,
      views);
}

std::shared_ptr<const Source> make_frame_source(FileList files, std::vector<std::string> class_names) {
  return std::make_shared<FileSource>(std::move(files), std::move(class_names), std::vector<std::string>());
}

std::shared_ptr<const Source> make_target_source(FileList files, std::vector<std::string> target_names,
                                                 const config::DataOptions& options) {
  return as_samples(std::move(files), {}, std::move(target_names), options);
}

}  // namespace stoker::data
