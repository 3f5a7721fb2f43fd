// SPDX-License-Identifier: Apache-2.0
#include "data/storage/byte_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"
#include "core/open_retrying.h"

namespace stoker::data {
namespace {

/// One attempt: 0, an errno, or -1 when the file ends too early.
int attempt_pread(int fd, uint64_t at, char* bytes, uint64_t count) {
  for (uint64_t done = 0; done < count;) {
    const ssize_t got = ::pread(fd, bytes + done, count - done, static_cast<off_t>(at + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) return -1;
    done += static_cast<uint64_t>(got);
  }
  return 0;
}

}  // namespace

FileBytes::FileBytes(std::string path) : path_(std::move(path)) {
  fd_ = core::open_retrying(path_.c_str(), O_RDONLY | O_NONBLOCK);
  struct stat info {};
  const int error_number = fd_ < 0 || ::fstat(fd_, &info) != 0 ? errno : 0;
  const bool regular = error_number == 0 && S_ISREG(info.st_mode);
  if (regular) {
    stamp_ = {info.st_size, int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec};
    return;
  }
  if (fd_ >= 0) ::close(fd_);
  if (error_number != 0) {
    throw core::errno_error(error_number, "read", core::printable(path_), core::ErrorKind::no_input);
  }
  throw core::Error(core::ErrorKind::no_input,
                    core::format("cannot read {}: it is {}", core::printable(path_),
                                 S_ISDIR(info.st_mode) ? "a directory" : "not a regular file"));
}

FileBytes::~FileBytes() {
  if (fd_ >= 0) ::close(fd_);
}

std::string FileBytes::try_read(uint64_t at, void* bytes, uint64_t count) const {
  const int error_number =
      with_storage_retries([&] { return attempt_pread(fd_, at, static_cast<char*>(bytes), count); });
  if (error_number > 0) {
    throw core::errno_error(error_number, "read", core::printable(path_), core::ErrorKind::io);
  }
  return error_number == 0 ? "" : "the file has become shorter since it was opened";
}

void FileBytes::read(uint64_t at, void* bytes, uint64_t count) const {
  const std::string cause = try_read(at, bytes, count);
  if (!cause.empty()) throw core::Error(core::ErrorKind::data, core::printable(path_) + ": " + cause);
}

namespace {

constexpr int64_t kMaxSampleBytes = int64_t{1} << 30;

/// Closes on every way out.
struct SampleDescriptor {
  explicit SampleDescriptor(const std::string& path) : fd(core::open_retrying(path.c_str(), O_RDONLY | O_NONBLOCK)) {}
  ~SampleDescriptor() {
    if (fd >= 0) ::close(fd);
  }
  SampleDescriptor& operator=(SampleDescriptor&&) = delete;  // not copied, not moved
  const int fd;
};

std::string stamp_problem(const struct stat& info, const FileStamp& stamp) {
  if (S_ISDIR(info.st_mode)) return "it is a directory";
  if (!S_ISREG(info.st_mode)) return "it is not a regular file";
  if (info.st_size > kMaxSampleBytes) {
    return core::format("it has {}, too much for an image", core::bytes_text(static_cast<double>(info.st_size)));
  }
  const int64_t modified_ns = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
  if (info.st_size != stamp.size) return "it has changed since the scan";
  if (modified_ns != stamp.modified_ns) return "its time has changed since the scan";
  return "";
}

/// One attempt. Returns 0 with `cause` set or empty, or an errno.
int attempt_read(const std::string& path, const FileStamp& stamp, int64_t max_bytes, std::vector<uint8_t>& buffer,
                 std::string& cause) {
  const SampleDescriptor file(path);
  struct stat info {};
  if (file.fd < 0 || ::fstat(file.fd, &info) != 0) return errno;
  cause = stamp_problem(info, stamp);
  if (!cause.empty()) return 0;
  const auto size = static_cast<size_t>(std::min<int64_t>(info.st_size, max_bytes));
  if (buffer.size() < size) buffer.resize(size);
  for (size_t done = 0; done < size;) {
    const ssize_t got = ::read(file.fd, buffer.data() + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) {
      cause = "it has changed since the scan";
      return 0;
    }
    done += static_cast<size_t>(got);
  }
  return 0;
}

}  // namespace

bool is_storage_error(int error_number) {
  return error_number == EIO || error_number == ESTALE || error_number == ETIMEDOUT;
}

int with_storage_retries(const std::function<int()>& attempt) {
  constexpr int kAttempts = 3;
  std::chrono::milliseconds pause(50);
  for (int i = 1;; ++i, pause *= 4) {
    const int error_number = attempt();
    if (i == kAttempts || !is_storage_error(error_number)) return error_number;
    std::this_thread::sleep_for(pause);
  }
}

std::string read_sample_file(const std::string& path, const FileStamp& stamp, std::vector<uint8_t>& buffer,
                             int64_t max_bytes) {
  std::string cause;
  const int error_number = with_storage_retries([&] { return attempt_read(path, stamp, max_bytes, buffer, cause); });
  if (error_number == 0) return cause;
  if (is_storage_error(error_number)) {
    throw core::Error(
        core::ErrorKind::io,
        core::format("cannot read {}: {} (3 attempts)", core::printable(path), std::strerror(error_number)),
        "the storage failed, not the file: look at the disk or the mount, then run the same command again");
  }
  if (error_number == EMFILE || error_number == ENFILE || error_number == ENOMEM || error_number == EACCES) {
    throw core::errno_error(error_number, "read", core::printable(path), core::ErrorKind::os);
  }
  return std::strerror(error_number);
}

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
    {0, "#?RGBE", true, "Radiance HDR", "convert FILE FILE.png"},
    {0, "\xD7\xCD\xC6\x9A", true, "WMF", "convert FILE FILE.png"},
    {0, std::string_view("\x01\xDA\0\x01", 4), true, "SGI", "convert sgi:FILE FILE.png"},
    {0, "\x01\xDA\x01\x01", true, "SGI", "convert sgi:FILE FILE.png"},
    {0, "\x59\xA6\x6A\x95", true, "Sun raster", "convert sun:FILE FILE.png"},
    {0, "\x8AMNG", true, "MNG", "convert 'FILE[0]' FILE.png"},
    {0, "\x8BJNG", true, "JNG", "convert jng:FILE FILE.png"},
    {0, "SDPX", true, "DPX", "convert dpx:FILE FILE.png"},
    {0, "XPDS", true, "DPX", "convert dpx:FILE FILE.png"},
    {0, "\x80\x2A\x5F\xD7", true, "Cineon", "convert cin:FILE FILE.png"},
    {0, "/* XPM */", true, "XPM", "convert xpm:FILE FILE.png"},
    {4, std::string_view("\0\0\0\7\0\0\0", 7), true, "XWD", "convert xwd:FILE FILE.png"},
    {522, std::string_view("\0\x11\2\xFF", 4), true, "PICT", "convert pict:FILE FILE.png"},
    {522, "\x11\1", true, "PICT", "convert pict:FILE FILE.png"},
    {0, "id=ImageMagick", true, "MIFF", "convert miff:FILE FILE.png"},
    {0, "AT&TFORM", true, "DjVu", "ddjvu -format=tiff FILE FILE.tif"},
    {0, "II\xBC\x01", true, "JPEG XR", "JxrDecApp -i FILE -o FILE.tif"},
    {0, "BPG\xFB", true, "BPG", "bpgdec -o FILE.png FILE"},
    {0, "FLIF", true, "FLIF", "flif -d FILE FILE.png"},
    {0, "farbfeld", true, "farbfeld", "ff2png < FILE > FILE.png"},
    {0, "NRRD000", true, "NRRD", "unu quantize -b 8 -i FILE -o FILE.png"},
    {0, "Pf\n", true, "PFM", "convert FILE FILE.png"},
    {0, "PF\n", true, "PFM", "convert FILE FILE.png"},
    {0, "DDS ", true, "DDS", "convert FILE FILE.png"},
    {0, "qoif", true, "QOI", "convert FILE FILE.png"},
    {0, "icns", true, "an icon of macOS", "convert FILE FILE.png"},
    // An icon of Windows has the number of its pictures there.
    {0, std::string_view("\0\0\1\0\0\0", 6), true, "JBIG", "jbigtopnm FILE > FILE.pbm"},
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
    {0, "<!DOCTYPE", false, "HTML", ""},
    {0, "<!doctype", false, "HTML", ""},
    {0, "<html", false, "HTML", ""},
    {0, "<", false, "HTML or XML", ""},
    {0, "\xEF\xBB\xBF<", false, "HTML or XML", ""},
    {0, "{", false, "JSON", ""},
    {0, "PK\x03\x04", false, "zip", "unzip FILE"},
    {0, "\x1F\x8B", false, "gzip", "gunzip -S '' FILE"},
    {0, "Rar!", false, "RAR", "unrar x FILE"},
    {0, "7z\xBC\xAF", false, "7-Zip", "7z x FILE"},
    {0, "BZh", false, "bzip2", "bunzip2 FILE"},
    {0, "\xFD\x37zXZ", false, "xz", "unxz -S '' FILE"},
    {0, "\x28\xB5\x2F\xFD", false, "Zstandard", "zstd -d FILE"},
    {257, "ustar", false, "tar", "tar xf FILE"},
    {0, "PAR1", false, "Parquet", ""},
    {0, "MATLAB 5.0", false, "MATLAB", ""},
    {0, "\xD0\xCF\x11\xE0", false, "a document of Windows (Thumbs.db)", ""},
    {4, "ftyp", false, "a video", "ffmpeg -i FILE FILE_%05d.png"},
    {8, "AVI ", false, "a video", "ffmpeg -i FILE FILE_%05d.png"},
    {0, "\x1A\x45\xDF\xA3", false, "a video", "ffmpeg -i FILE FILE_%05d.png"},
};

const KnownKind* known_kind(const ByteView& file) {
  constexpr std::string_view kSvg = "<svg";
  const ByteView front = file.part(0, 1024);
  if (file.u8(0) == '<' &&
      std::search(front.data(), front.data() + front.size(), kSvg.begin(), kSvg.end()) != front.data() + front.size()) {
    return std::find_if(std::begin(kKnown), std::end(kKnown), [&](const KnownKind& k) { return k.magic == kSvg; });
  }
  const auto* const found = std::find_if(std::begin(kKnown), std::end(kKnown),
                                         [&](const KnownKind& kind) { return file.matches(kind.at, kind.magic); });
  return found == std::end(kKnown) ? nullptr : found;
}

bool is_bitmap(const ByteView& file) {
  constexpr std::array<uint32_t, 8> kHeaders = {12, 16, 40, 52, 56, 64, 108, 124};
  if (!file.matches(0, "BM")) return false;
  const uint32_t header = file.little32(14), planes = file.little16(26);
  const bool may_be_of_os2 = header > 16 && header < 64 && header % 2 == 0 && planes == 1;
  return may_be_of_os2 || std::find(kHeaders.begin(), kHeaders.end(), header) != kHeaders.end();
}

/// Several bitmaps of OS/2 in one file.
bool is_bitmap_array(const ByteView& file) { return file.matches(0, "BA") && file.matches(14, "BM"); }

bool is_pnm(const ByteView& file) {
  constexpr std::string_view kAfter = " \t\r\n\v\f#";
  return file.has(0, 3) && file.u8(0) == 'P' && file.u8(1) >= '1' && file.u8(1) <= '7' &&
         kAfter.find(static_cast<char>(file.u8(2))) != std::string_view::npos;
}

/// TGA has no first bytes of its own, only a header of plausible numbers.
bool may_be_tga(const ByteView& file) {
  constexpr std::array<uint32_t, 6> kTypes = {1, 2, 3, 9, 10, 11};
  constexpr std::array<uint32_t, 6> kDepths = {1, 8, 15, 16, 24, 32};
  const auto is_in = [](const auto& list, uint32_t value) {
    return std::find(list.begin(), list.end(), value) != list.end();
  };
  return file.has(0, 18) && file.u8(1) <= 1 && is_in(kTypes, file.u8(2)) && file.little16(12) > 0 &&
         file.little16(14) > 0 && is_in(kDepths, file.u8(16)) && file.u8(17) < 64;
}

/// PCX has a single byte of its own, then a version, whether it is packed, and the bits of a sample.
bool is_pcx(const ByteView& file) {
  const uint32_t version = file.u8(1), bits = file.u8(3);
  return file.has(0, 32) && file.u8(0) == 10 && version <= 5 && version != 1 && file.u8(2) <= 1 &&
         (bits == 1 || bits == 2 || bits == 4 || bits == 8);
}

/// C files begin so, too.
bool is_xbm(const ByteView& file) {
  constexpr std::string_view kWidth = "_width ";
  const ByteView front = file.part(0, 256);
  return file.matches(0, "#define ") && std::search(front.data(), front.data() + front.size(), kWidth.begin(),
                                                    kWidth.end()) != front.data() + front.size();
}

/// A whole picture in a wrapping, or one that something has changed on its way. `reason` holds the remedy.
struct WrappedKind {
  std::string_view magic;
  const char* reason;
};

constexpr WrappedKind kWrapped[] = {
    {"\x89PNG\n",
     "a PNG damaged by a transfer in text mode, which changed line endings; transfer it again in binary mode"},
    {"\x89PNG\r\r\n",
     "a PNG damaged by a transfer in text mode, which changed line endings; transfer it again in binary mode"},
    {"\x89PNG\r\n\x1A\r\n",
     "a PNG damaged by a transfer in text mode, which changed line endings; transfer it again in binary mode"},
    {"\tPNG\r\n", "a PNG whose bytes a transfer of 7 bits has changed; transfer it again as binary"},
    {"\xEF\xBF\xBDPNG", "a PNG that was read as text and written again, which loses bytes; get it again"},
    {"\xEF\xBF\xBD\xEF\xBF\xBD",
     "bytes that were read as text and written again, which loses bytes; get the file again"},
    {"/9j/4", "a JPEG as base64 text is not read; decode it: base64 -d FILE > FILE.jpg"},
    {"iVBORw0KGgo", "a PNG as base64 text is not read; decode it: base64 -d FILE > FILE.png"},
    {"R0lGOD", "a GIF as base64 text is not read; decode it: base64 -d FILE > FILE.gif"},
    {"UklGR", "a WebP as base64 text is not read; decode it: base64 -d FILE > FILE.webp"},
    {"data:image/",
     "an image as base64 text is not read; decode it: sed 's/^data:[^,]*,//' FILE | base64 -d > FILE.jpg"},
    {"version https://git-lfs", "a pointer of Git LFS, not the file itself; get the files: git lfs pull"},
};

/// The number of bytes of text in front of a JPEG or PNG; 0: there is none behind a text.
uint64_t text_before_picture(const ByteView& file) {
  constexpr uint64_t kMostText = 4096;
  uint64_t at = file.matches(0, "\xEF\xBB\xBF") ? 3 : file.matches(0, "\xFF\xFE") ? 2 : 0;
  for (; at < kMostText && file.has(at, 8); ++at) {
    if (file.matches(at, "\xFF\xD8\xFF") || file.matches(at, "\x89PNG\r\n\x1A\n")) return at;
    const uint32_t byte = file.u8(at);
    if ((byte < ' ' && byte != '\t' && byte != '\n' && byte != '\r') || byte > '~') return 0;
  }
  return 0;
}

/// Empty: nothing is known of such a wrapping.
std::string wrapped_kind(const ByteView& file) {
  for (const WrappedKind& kind : kWrapped) {
    if (file.matches(0, kind.magic)) return kind.reason;
  }
  const uint64_t before = text_before_picture(file);
  if (before == 0) return "";
  const bool is_png = file.matches(before, "\x89PNG");
  return core::format("{} behind {} is not read; cut that off: tail -c +{} FILE > FILE.{}", is_png ? "a PNG" : "a JPEG",
                      file.matches(0, "HTTP/") ? "the header of a web server's answer"
                      : file.matches(0, "\xEF\xBB\xBF")
                          ? "a byte order mark"
                          : core::counted(static_cast<int64_t>(before), "byte") + " of text",
                      before + 1, is_png ? "png" : "jpg");
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
  if (std::string reason = wrapped_kind(file); !reason.empty()) return reason;
  const KnownKind* const kind = known_kind(file);
  if (kind == nullptr) {
    if (is_pcx(file)) return "PCX is not read; convert it: convert pcx:FILE FILE.png";
    if (is_xbm(file)) return "XBM is not read; convert it: convert xbm:FILE FILE.png";
    if (file.little32(0) == 40 && file.little16(12) == 1) {
      return "a bitmap without its file header (DIB) is not read; convert it: convert dib:FILE FILE.png";
    }
    if (is_bitmap_array(file)) return "a bitmap array of OS/2 is not read; convert it: convert bmp:FILE FILE.png";
    if (may_be_tga(file)) return "TGA is not read; convert it: convert tga:FILE FILE.png";
    if (std::all_of(file.data(), file.data() + file.size(), [](uint8_t byte) { return byte == 0; })) {
      return "not an image: all of its bytes are zero: an incomplete copy";
    }
    return core::format("not an image: the first bytes are those of no format that is read ({})", kRead);
  }
  if (kind->command[0] == 0) return core::format("{} is not read as an image; remove the file", kind->name);
  return core::format("{} is not read; convert it: {}", kind->name, kind->command);
}

std::string reason_for(const std::string& name, const std::string& reason) {
  struct stat info {};
  if (::stat(name.c_str(), &info) != 0) return reason;  // a member of an archive
  std::string text;
  const std::pair<std::string_view, std::string> words[] = {{"'FILE[0]'", core::shell_word(name + "[0]")},
                                                            {"FILE", core::shell_word(name)}};
  for (size_t at = 0; at < reason.size();) {
    const auto* const word = std::find_if(std::begin(words), std::end(words), [&](const auto& pair) {
      return reason.compare(at, pair.first.size(), pair.first) == 0;
    });
    if (word == std::end(words)) {
      text += reason[at++];
    } else {
      text += word->second;
      at += word->first.size();
    }
  }
  return text;
}

std::string bad_file_text(const std::string& name, const std::string& reason) {
  return core::printable(name) + ": " + reason_for(name, reason);
}

bool is_picture(const ByteView& file) {
  const KnownKind* const kind = known_kind(file);
  return image_format(file) != ImageFormat::unknown || is_bitmap_array(file) || is_pcx(file) ||
         (kind != nullptr && kind->is_picture);
}

std::string sha256_of(const ByteReader& file) {
  constexpr uint64_t kBlock = 1 << 20;
  std::vector<char> block(kBlock);
  core::Sha256 digest;
  for (uint64_t at = 0; at < file.size(); at += kBlock) {
    const uint64_t count = std::min(kBlock, file.size() - at);
    file.read(at, block.data(), count);
    digest.add(block.data(), count);
  }
  return digest.hex();
}

}  // namespace stoker::data
