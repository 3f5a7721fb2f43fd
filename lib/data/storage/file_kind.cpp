// SPDX-License-Identifier: Apache-2.0
#include "data/storage/file_kind.h"

#include <algorithm>
#include <array>

#include "core/format.h"

namespace stoker::data {
namespace {

struct KnownKind {
  uint64_t at;
  std::string_view magic;
  bool is_picture;
  const char* name;
  const char* command;  ///< with FILE for the file's name; empty: there is none to give
};

constexpr KnownKind kKnown[] = {
    {4, "ftypavif", true, "AVIF", "avifdec FILE FILE.png"},
    {4, "ftypavis", true, "AVIF", "avifdec FILE FILE.png"},
    {4, "ftyphei", true, "HEIC", "heif-convert FILE FILE.jpg"},
    {4, "ftyphev", true, "HEIC", "heif-convert FILE FILE.jpg"},
    {4, "ftypmif1", true, "HEIF", "heif-convert FILE FILE.jpg"},
    {4, "ftypmsf1", true, "HEIF", "heif-convert FILE FILE.jpg"},
    {4, "ftypcrx", true, "a camera's raw file (CR3)", "dcraw_emu -T FILE"},
    {0, "\xFF\x0A", true, "JPEG XL", "djxl FILE FILE.png"},
    {4, "JXL ", true, "JPEG XL", "djxl FILE FILE.png"},
    {0, "\xFF\xF7", true, "JPEG-LS", "convert FILE FILE.png"},
    {0, "8BPS", true, "Photoshop", "convert 'FILE[0]' FILE.png"},
    {0, "gimp xcf", true, "GIMP", "convert FILE -flatten FILE.png"},
    {0, "\x76\x2F\x31\x01", true, "EXR", "convert FILE FILE.png"},
    {0, "#?RADIANCE", true, "Radiance HDR", "convert FILE FILE.png"},
    {0, "Pf\n", true, "PFM", "convert FILE FILE.png"},
    {0, "PF\n", true, "PFM", "convert FILE FILE.png"},
    {0, "DDS ", true, "DDS", "convert FILE FILE.png"},
    {0, "qoif", true, "QOI", "convert FILE FILE.png"},
    {0, "icns", true, "an icon of macOS", "convert FILE FILE.png"},
    {0, std::string_view("\0\0\1\0", 4), true, "an icon of Windows", "convert 'FILE[0]' FILE.png"},
    {0, "FUJIFILMCCD-RAW", true, "a camera's raw file (RAF)", "dcraw_emu -T FILE"},
    {0, std::string_view("IIU\0", 4), true, "a camera's raw file (RW2)", "dcraw_emu -T FILE"},
    {0, "IIRO", true, "a camera's raw file (ORF)", "dcraw_emu -T FILE"},
    {0, "FORM", false, "IFF", "convert FILE FILE.png"},
    {0, "SIMPLE  =", true, "FITS", "convert FILE FILE.png"},
    {128, "DICM", true, "DICOM", "dcm2pnm +on FILE FILE.png"},
    {0, "\x89HDF", false, "HDF5", ""},
    {0, "\x93NUMPY", false, "NumPy", ""},
    {0, "%PDF", false, "PDF", "pdftoppm -png FILE FILE"},
    {0, "%!PS", false, "PostScript", "convert -density 150 FILE FILE.png"},
    {0, "<svg", true, "SVG", "rsvg-convert -o FILE.png FILE"},
    {0, "<?xml", false, "XML", ""},
    {0, "<!DOCTYPE", false, "HTML", ""},
    {0, "<!doctype", false, "HTML", ""},
    {0, "<html", false, "HTML", ""},
    {0, "PK\x03\x04", false, "zip", "unzip FILE"},
    {0, "\x1F\x8B", false, "gzip", "gunzip -S '' FILE"},
    {0, "Rar!", false, "RAR", "unrar x FILE"},
    {0, "7z\xBC\xAF", false, "7-Zip", "7z x FILE"},
    {4, "ftyp", false, "a video", "ffmpeg -i FILE FILE_%05d.png"},
    {0, "\x1A\x45\xDF\xA3", false, "a video", "ffmpeg -i FILE FILE_%05d.png"},
    {0, "version https://git-lfs", false, "a pointer of Git LFS", "git lfs pull"},
};

const KnownKind* known_kind(const ByteView& file) {
  const auto* const found = std::find_if(std::begin(kKnown), std::end(kKnown),
                                         [&](const KnownKind& kind) { return file.matches(kind.at, kind.magic); });
  return found == std::end(kKnown) ? nullptr : found;
}

bool is_bitmap(const ByteView& file) {
  constexpr std::array<uint32_t, 8> kHeaders = {12, 16, 40, 52, 56, 64, 108, 124};
  return file.matches(0, "BM") && std::find(kHeaders.begin(), kHeaders.end(), file.little32(14)) != kHeaders.end();
}

bool is_pnm(const ByteView& file) {
  constexpr std::string_view kAfter = " \t\r\n\v\f#";
  return file.has(0, 3) && file.u8(0) == 'P' && file.u8(1) >= '1' && file.u8(1) <= '7' &&
         kAfter.find(static_cast<char>(file.u8(2))) != std::string_view::npos;
}

}  // namespace

ImageFormat image_format(const ByteView& file) {
  using namespace std::string_view_literals;
  if (file.matches(0, "\xFF\xD8\xFF")) return ImageFormat::jpeg;
  if (file.matches(0, "\x89PNG\r\n\x1A\n")) return ImageFormat::png;
  if (file.matches(0, "RIFF") && file.matches(8, "WEBP")) return ImageFormat::webp;
  if (is_bitmap(file)) return ImageFormat::bmp;
  for (const std::string_view magic : {"II*\0"sv, "MM\0*"sv, "II+\0"sv, "MM\0+"sv}) {
    if (file.matches(0, magic)) return ImageFormat::tiff;
  }
  if (file.matches(0, "GIF87a") || file.matches(0, "GIF89a")) return ImageFormat::gif;
  if (file.matches(4, "jP  \r\n\x87\n") || file.matches(0, "\xFF\x4F\xFF\x51")) return ImageFormat::jpeg2000;
  return is_pnm(file) ? ImageFormat::pnm : ImageFormat::unknown;
}

std::string unread_kind(const ByteView& file) {
  constexpr const char* kRead = "JPEG, PNG, BMP, WebP, TIFF, GIF, PNM, JPEG 2000";
  const KnownKind* const kind = known_kind(file);
  if (kind == nullptr) {
    return core::format("not an image: the first bytes are those of no format that is read ({})", kRead);
  }
  if (kind->command[0] == 0) return core::format("{} is not read as an image; remove the file", kind->name);
  return core::format("{} is not read; convert it: {}", kind->name, kind->command);
}

bool is_picture(const ByteView& file) {
  const KnownKind* const kind = known_kind(file);
  return image_format(file) != ImageFormat::unknown || (kind != nullptr && kind->is_picture);
}

}  // namespace stoker::data
