// SPDX-License-Identifier: Apache-2.0
#include "data/shard/shard_scan.h"

#include <algorithm>
#include <array>

#include "core/format.h"
#include "core/hash.h"
#include "core/system/stop_signal.h"
#include "core/text/json.h"
#include "data/container/tar_reader.h"
#include "data/storage/stand_in.h"

namespace stoker::data {
namespace {

constexpr uint64_t kMaxLabelBytes = 4096, kMaxJsonBytes = 1 << 20;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// Members that share a key, so far.
struct Sample {
  std::string key;
  TarEntry image;
  int image_rank = -1;
  int32_t label = -1;
  bool has_cls = false;
};

class ShardScan {
 public:
  ShardScan(const ByteReader& shard, const ShardLabels& labels, ScanNotes& notes)
      : shard_(shard), labels_(labels), notes_(notes), reader_(shard) {}

  ShardIndex run() {
    for (TarEntry entry; reader_.next(entry);) {
      core::throw_if_stopped();
      const MemberName parts = split_member(entry.name);
      if (parts.key.empty()) {
        notes_.count("members of shards that are not part of a sample", place_of(entry));
        continue;
      }
      if (parts.key != sample_.key) {
        close_sample();
        sample_.key = parts.key;
      }
      take(entry, parts.kind);
    }
    close_sample();
    if (reader_.passed_over() > 0) notes_.count("shards with links or devices, which are not read", shard_.name());
    index_.shard_bytes = shard_.size();
    index_.source_count = index_.entries.size();
    index_.entries.shrink_to_fit();
    index_.names.shrink_to_fit();
    return std::move(index_);
  }

 private:
  std::string place_of(const TarEntry& entry) const { return shard_.name() + "/" + entry.name; }

  [[noreturn]] void fail(const TarEntry& entry, const std::string& cause) const {
    throw core::Error(core::ErrorKind::data, core::printable(place_of(entry)) + ": " + cause,
                      "a label is a number from 0, or the name of a class that stands in classes.txt");
  }

  void take(const TarEntry& entry, std::string_view suffix) {
    const std::string kind = core::lower_case(std::string(suffix));  // as WebDataset reads it
    const int rank = image_kind_rank(kind);
    if (rank >= 0 && (sample_.image_rank < 0 || rank < sample_.image_rank)) {
      sample_.image = entry;
      sample_.image_rank = rank;
    } else if (kind == "cls") {
      if (sample_.has_cls) fail(entry, "a second label of one sample");
      sample_.has_cls = true;
      const std::string text = reader_.content_of(entry, kMaxLabelBytes);
      if (const std::string problem = labels_.read_text(text, sample_.label); !problem.empty()) fail(entry, problem);
    } else if (kind == "json" && !sample_.has_cls) {
      const std::string text = reader_.content_of(entry, kMaxJsonBytes);
      if (const std::string problem = labels_.read_json(text, sample_.label); !problem.empty()) fail(entry, problem);
    }
  }

  void close_sample() {
    if (sample_.image_rank >= 0) {
      const TarEntry& image = sample_.image;
      if (image.size > kMaxShardImageBytes) {
        fail(image, core::format("{} bytes, too much for an image", image.size));
      }
      index_.add(image.offset, static_cast<uint32_t>(image.size), sample_.label, name_of_member(image.name));
    } else if (!sample_.key.empty()) {
      notes_.count("samples of shards without an image or sound", shard_.name() + "/" + sample_.key);
    }
    sample_ = Sample();
  }

  const ByteReader& shard_;
  const ShardLabels& labels_;
  ScanNotes& notes_;
  TarReader reader_;
  Sample sample_;
  ShardIndex index_;
};

}  // namespace

ShardLabels::ShardLabels(const std::vector<std::string>& class_names) {
  for (size_t i = 0; i < class_names.size(); ++i) by_name_.emplace(class_names[i], static_cast<int32_t>(i));
}

std::string ShardLabels::read_text(std::string_view text, int32_t& label) const {
  const std::string_view word = trimmed(text);
  const bool digits = !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
  if (digits && word.size() <= 6) {
    label = 0;
    for (const char c : word) label = label * 10 + (c - '0');
    return "";
  }
  const auto found = by_name_.find(std::string(word));
  if (!digits && found != by_name_.end()) {
    label = found->second;
    return "";
  }
  if (digits) return core::format("label {} is too large", core::printable(word.substr(0, 40)));
  return core::format("label '{}' is neither a number nor the name of a class", core::printable(word.substr(0, 80)));
}

std::string ShardLabels::read_json(const std::string& text, int32_t& label) const {
  core::Json json;
  try {
    json = core::parse_json(text, "json");
  } catch (const core::Error& error) {
    return error.what();
  }
  const auto found = json.is_object() ? json.find("label") : json.end();
  label = -1;
  if (found == json.end() || found->is_null()) return "";
  if (found->is_string()) return read_text(found->get<std::string>(), label);
  if (found->is_number_unsigned()) return read_text(std::to_string(found->get<uint64_t>()), label);
  return "its label is neither a whole number from 0 nor a text";
}

namespace {

/// An archive that was compressed, whatever it is called: its members have no place to be read from.
void refuse_compressed(const ByteReader& shard, std::string_view begin) {
  struct Packed {
    std::string_view begin;
    const char *name, *step;
  };
  constexpr Packed kPacked[] = {{"\x1f\x8b", "gzip", "gzip -dc"},
                                {"\x28\xb5\x2f\xfd", "Zstandard", "zstd -dc"},
                                {"\x04\x22\x4d\x18", "LZ4", "lz4 -dc"},
                                {"BZh", "bzip2", "bzip2 -dc"},
                                {"\xfd"
                                 "7zXZ",
                                 "xz", "xz -dc"},
                                {"PK\3\4", "zip", ""}};
  for (const Packed& packed : kPacked) {
    if (begin.substr(0, packed.begin.size()) != packed.begin) continue;
    const std::string path = core::shell_word(shard.name());
    throw core::Error(core::ErrorKind::data,
                      core::format("{}: compressed by {}: its members cannot be read in any order",
                                   core::printable(shard.name()), packed.name),
                      *packed.step == 0 ? "unpack it: unzip " + path
                                        : core::format("unpack each archive: {0} {1} > {1}.plain && mv {1}.plain {1}",
                                                       packed.step, path));
  }
}

/// Throws where a file is called like a shard and is none.
void refuse_other_kinds(const ByteReader& shard) {
  constexpr uint64_t kFirst = 262;
  std::string begin(static_cast<size_t>(std::min(kFirst, shard.size())), '\0');
  shard.read(0, begin.data(), begin.size());
  begin.resize(kFirst);
  refuse_compressed(shard, begin);
  if (begin.compare(257, 5, "ustar") == 0) return;  // whatever its first member is called
  refuse_stand_in(shard.name(), begin, "a tar archive");
  if (begin[0] != '{') return;
  throw core::Error(core::ErrorKind::data, core::format("{} is JSON, not a tar archive", core::printable(shard.name())),
                    kFetchAgain);
}

}  // namespace

ShardIndex scan_shard(const ByteReader& shard, const ShardLabels& labels, ScanNotes& notes) {
  refuse_other_kinds(shard);
  return ShardScan(shard, labels, notes).run();
}

std::string digest_of(const ByteReader& bytes) {
  constexpr uint64_t kStep = 1 << 20;
  std::vector<uint8_t> buffer(static_cast<size_t>(std::min(kStep, bytes.size())));
  core::Hasher hasher;
  for (uint64_t at = 0; at < bytes.size(); at += kStep) {
    core::throw_if_stopped();
    const uint64_t count = std::min(kStep, bytes.size() - at);
    bytes.read(at, buffer.data(), count);
    hasher.add(buffer.data(), count);
  }
  return hasher.hex();
}

namespace {

constexpr std::string_view kWholeMark = "%~";
// Images, then sounds.
constexpr std::array<std::string_view, 17> kImageKinds = {"jpg", "jpeg", "png",  "webp", "bmp", "tif",
                                                          "gif", "ppm",  "pgm",  "pbm",  "pam", "pnm",
                                                          "jp2", "wav",  "flac", "ogg",  "mp3"};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

std::string_view base_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

std::string_view extension_part(std::string_view relative_name) {
  const std::string_view base = base_of(relative_name);
  return base.substr(base.rfind('.') + 1);
}

bool is_text(std::string_view name) { return core::printable(name) == name; }

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/// %XX back to bytes; anything else stays as it is.
std::string decoded(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
    if (low < 0) {
      result += text[i];
    } else {
      result += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return result;
}

}  // namespace

MemberName split_member(std::string_view member) {
  const size_t base_at = member.rfind('/') + 1;
  const size_t dot = member.find('.', base_at);
  if (dot == std::string_view::npos || dot == base_at) return {};
  return {member.substr(0, dot), member.substr(dot + 1)};
}

bool is_plain_name(std::string_view relative_name) {
  const MemberName parts = split_member(relative_name);
  const bool one_dot = parts.kind.find('.') == std::string_view::npos;
  if (parts.key.empty() || !one_dot || image_kind_rank(parts.kind) < 0 || !is_text(relative_name)) return false;
  if (relative_name.find('%') != std::string_view::npos || relative_name.substr(0, 2) == "__") return false;
  const std::string framed = "/" + std::string(parts.key) + "/";
  return framed.find("//") == std::string::npos && framed.find("/./") == std::string::npos &&
         framed.find("/../") == std::string::npos;
}

bool extension_fits(std::string_view relative_name, ImageFormat format) {
  const std::string extension = lower(extension_part(relative_name));
  return extension == extension_of(format) || (extension == "jpeg" && format == ImageFormat::jpeg);
}

std::string plain_key(std::string_view relative_name) { return std::string(split_member(relative_name).key); }

std::string whole_key(std::string_view relative_name, uint64_t copy) {
  const bool text = is_text(relative_name);
  std::string key;
  for (size_t i = 0; i < relative_name.size(); ++i) {
    const char c = relative_name[i];
    const auto byte = static_cast<uint8_t>(c);
    const bool begins_part = i == 0 || relative_name[i - 1] == '/';
    const bool kept = c != '.' && c != '%' && byte >= 0x20 && byte != 0x7F && (text || byte < 0x80) &&
                      !(c == '/' && begins_part) && !(c == '_' && i == 0);
    if (kept) {
      key += c;
    } else {
      key += core::format("%{:02X}", byte);
    }
  }
  if (!key.empty() && key.back() == '/') key.replace(key.size() - 1, 1, "%2F");
  key += kWholeMark;
  return copy == 0 ? key : key + std::to_string(copy);
}

const char* extension_of(ImageFormat format) {
  switch (format) {
    case ImageFormat::jpeg: return "jpg";
    case ImageFormat::png: return "png";
    case ImageFormat::bmp: return "bmp";
    case ImageFormat::webp: return "webp";
    case ImageFormat::tiff: return "tif";
    case ImageFormat::pnm: return "ppm";
    case ImageFormat::gif: return "gif";
    case ImageFormat::jpeg2000: return "jp2";
    case ImageFormat::unknown: break;
  }
  return "bin";
}

std::string name_of_member(std::string_view member) {
  const std::string_view key = split_member(member).key;
  const size_t mark = key.rfind(kWholeMark);
  if (mark == std::string_view::npos) return std::string(member);
  const std::string_view copy = key.substr(mark + kWholeMark.size());
  const bool ours = std::all_of(copy.begin(), copy.end(), [](char c) { return c >= '0' && c <= '9'; });
  return ours && mark > 0 ? decoded(key.substr(0, mark)) : std::string(member);
}

int image_kind_rank(std::string_view kind) {
  const size_t dot = kind.rfind('.');
  const auto found = std::find(kImageKinds.begin(), kImageKinds.end(), lower(kind.substr(dot + 1)));
  if (found == kImageKinds.end()) return -1;
  const auto rank = static_cast<int>(found - kImageKinds.begin());
  return dot == std::string_view::npos ? rank : rank + static_cast<int>(kImageKinds.size());
}

}  // namespace stoker::data
