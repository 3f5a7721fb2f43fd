// SPDX-License-Identifier: Apache-2.0
#include "weights/file/other_kinds.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/format.h"

namespace stoker::weights {
namespace {

using core::format;
using data::ByteView;

constexpr uint64_t kFrontBytes = 4096;
constexpr size_t kShownBytes = 60;  // of a text

constexpr char kReadKinds[] = "only files of PyTorch (torch.save()) and safetensors are read";

struct OtherKind {
  uint64_t at;
  std::string_view magic;
  const char *name, *step;  ///< FILE in a step stands for the file
};

// Commands unpack into a file of another name: one that is read and written at once would be lost.
constexpr OtherKind kOtherKinds[] = {
    {0, "version https://git-lfs", "it is a pointer of Git LFS, which stands in place of the weights",
     "run git lfs pull in its repository, which fetches them"},
    {0, "\x89HDF\r\n\x1A\n", "it is HDF5, as Keras writes it", ""},
    {0, "\x93NUMPY", "it is an array of NumPy", ""},
    {0, "GGUF", "it is GGUF", ""},
    {4, "TFL3", "it is a network of TensorFlow Lite", ""},
    {0, "\x1F\x8B", "it is packed with gzip",
     "unpack it first: gunzip < FILE > FILE.unpacked, or tar xzf FILE where it was a .tar.gz"},
    {0, "BZh", "it is packed with bzip2",
     "unpack it first: bunzip2 < FILE > FILE.unpacked, or tar xjf FILE where it was a .tar.bz2"},
    {0, "\xFD\x37zXZ", "it is packed with xz",
     "unpack it first: unxz < FILE > FILE.unpacked, or tar xJf FILE where it was a .tar.xz"},
    {0, "\x28\xB5\x2F\xFD", "it is packed with Zstandard", "unpack it first: zstd -d < FILE > FILE.unpacked"},
    {0, "7z\xBC\xAF", "it is an archive of 7-Zip", "unpack it first: 7z x FILE"},
    {0, "Rar!", "it is a RAR archive", "unpack it first: unrar x FILE"},
    {257, "ustar", "it is a tar archive", "unpack it first: tar xf FILE, then give the file of weights that was in it"},
};

[[noreturn]] void refuse_kind(const data::ByteReader& file, const std::string& reason, const std::string& step) {
  throw core::Error(core::ErrorKind::data, core::printable(file.name()) + ": " + reason,
                    data::reason_for(file.name(), step));
}

/// The length of its header is plausible, and the header begins as one does.
bool may_be_safetensors(const ByteView& front) {
  const auto is_zero = [&](uint64_t at) { return front.u8(at) == 0; };
  return front.u8(8) == '{' && is_zero(4) && is_zero(5) && is_zero(6) && is_zero(7);
}

/// Protobuf has no first bytes of its own. ONNX begins with field 1, a version of at least 3 as a number, and one of
/// the fields 2 to 8.
bool is_onnx(const ByteView& front) {
  constexpr std::string_view kNextFields = "\x12\x1A\x22\x28\x32\x3A\x42";
  return front.has(0, 3) && front.u8(0) == 0x08 && front.u8(1) >= 3 && front.u8(1) < 32 &&
         kNextFields.find(static_cast<char>(front.u8(2))) != std::string_view::npos;
}

/// Without the last character where it has several bytes, of which some may have been cut off.
std::string_view whole_characters(std::string_view text) {
  size_t end = text.size();
  while (end > 0 && (static_cast<uint8_t>(text[end - 1]) & 0xC0) == 0x80) --end;
  if (end > 0 && static_cast<uint8_t>(text[end - 1]) >= 0xC0) return text.substr(0, end - 1);
  return text;
}

bool is_text(std::string_view front) {
  const auto is_control = [](char c) {
    const auto byte = static_cast<uint8_t>(c);
    return (byte < 0x20 && std::string_view("\t\n\r\f").find(c) == std::string_view::npos) || byte == 0x7F;
  };
  return std::none_of(front.begin(), front.end(), is_control) && core::is_utf8(whole_characters(front));
}

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";  // of UTF-8
  if (text.substr(0, kMark.size()) == kMark) text.remove_prefix(kMark.size());
  const size_t begin = text.find_first_not_of(" \t\n\r\f");
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin);
}

[[noreturn]] void refuse_text(const data::ByteReader& file, std::string_view text) {
  const std::string lower = core::lower_case(std::string(text));
  if (!text.empty() && text[0] == '<' &&
      (lower.find("<html") != std::string::npos || lower.find("<!doctype html") != std::string::npos)) {
    refuse_kind(file, "it is a web page (HTML), not weights",
                "a server sent a page in place of the file: download it again, from the address of the file itself "
                "(at Hugging Face with /resolve/ instead of /blob/), logged in where it needs that");
  }
  if (!text.empty() && (text[0] == '{' || text[0] == '[')) {
    refuse_kind(file, "it is JSON, not weights", std::string(kReadKinds) + "; give the file of weights beside it");
  }
  const std::string_view line = text.substr(0, text.find_first_of("\r\n"));
  const std::string_view shown = line.size() > kShownBytes ? whole_characters(line.substr(0, kShownBytes)) : line;
  refuse_kind(file,
              format("it is text, not weights; it begins with \"{}\"{}", core::printable(shown),
                     shown.size() < line.size() ? "..." : ""),
              std::string(kReadKinds) + "; copy or download the file again, or give another one");
}

}  // namespace

void refuse_other_kind(const data::ByteReader& file) {
  std::string bytes(std::min(file.size(), kFrontBytes), '\0');
  file.read(0, bytes.data(), bytes.size());
  constexpr char kFetchAgain[] = "copy or download the file again";
  if (bytes.empty()) refuse_kind(file, "it is empty (0 bytes)", kFetchAgain);
  if (bytes.find_first_not_of('\0') == std::string::npos) {
    refuse_kind(file, format("its first {} are zero: an incomplete copy", core::counted(int64_t(bytes.size()), "byte")),
                kFetchAgain);
  }
  const ByteView front(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  if (may_be_safetensors(front)) return;
  for (const OtherKind& kind : kOtherKinds) {
    if (!front.matches(kind.at, kind.magic)) continue;
    const bool has_step = kind.step[0] != 0;
    refuse_kind(file, kind.name,
                has_step ? kind.step
                         : std::string(kReadKinds) +
                               "; in Python: safetensors.torch.save_file(tensors, "
                               "'weights.safetensors') with tensors by name");
  }
  if (is_onnx(front)) {
    refuse_kind(file, "it is ONNX", std::string(kReadKinds) + "; give the checkpoint that it was exported from");
  }
  if (is_text(bytes)) refuse_text(file, without_blanks(bytes));
}

}  // namespace stoker::weights
