// SPDX-License-Identifier: Apache-2.0
#include "data/shard/shard_name.h"

#include <algorithm>
#include <array>

#include "core/format.h"

namespace stoker::data {
namespace {

constexpr std::string_view kWholeMark = "%~";
constexpr std::array<std::string_view, 13> kImageKinds = {"jpg", "jpeg", "png", "webp", "bmp", "tif", "gif",
                                                          "ppm", "pgm",  "pbm", "pam",  "pnm", "jp2"};

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
