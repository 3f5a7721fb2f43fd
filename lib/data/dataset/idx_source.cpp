// SPDX-License-Identifier: Apache-2.0
#include "data/dataset/idx_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"
#include "core/open_retrying.h"
#include "core/system/file.h"
#include "core/system/machine.h"
#include "core/system/stop_signal.h"
#include "data/leaf_source.h"

namespace stoker::data {
namespace {

constexpr uint32_t kImagesMagic = 0x00000803, kLabelsMagic = 0x00000801;
constexpr char kIdxHint[] =
    "get the file again; IDX files start with the magic 0x00000803 (images) or 0x00000801 (labels)";

/// A plain or gzipped file read front to back; zlib passes plain files through.
class IdxFile {
 public:
  explicit IdxFile(const std::string& path) : path_(path) {
    const int fd = core::open_retrying(path.c_str(), O_RDONLY | O_NONBLOCK);
    if (fd < 0) throw core::errno_error(errno, "read", core::printable(path), core::ErrorKind::no_input);
    struct stat info {};
    const bool regular = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    file_bytes_ = regular ? static_cast<uint64_t>(info.st_size) : 0;
    if (regular) file_ = ::gzdopen(fd, "rb");
    if (file_ == nullptr) {
      ::close(fd);
      throw core::Error(core::ErrorKind::no_input,
                        "cannot read " + core::printable(path) + ": it is not a regular file");
    }
    ::gzbuffer(file_, 1 << 18);
  }
  ~IdxFile() { ::gzclose(file_); }
  IdxFile(const IdxFile&) = delete;
  IdxFile& operator=(const IdxFile&) = delete;

  /// Up to `count` bytes; less only at the end of the file.
  uint64_t read(uint8_t* bytes, uint64_t count) {
    uint64_t done = 0;
    while (done < count) {
      const auto step = static_cast<unsigned>(std::min<uint64_t>(count - done, 1u << 20));
      const int got = ::gzread(file_, bytes + done, step);
      if (got < 0) fail_reading();
      if (got == 0) break;
      done += static_cast<uint64_t>(got);
    }
    return done;
  }

  [[noreturn]] void fail(const std::string& cause) const {
    throw core::Error(core::ErrorKind::data, core::printable(path_) + ": " + cause, kIdxHint);
  }

  /// Big-endian 32-bit numbers of the header.
  template <size_t kCount>
  std::array<uint32_t, kCount> read_header() {
    std::array<uint8_t, kCount * 4> bytes{};
    if (read(bytes.data(), bytes.size()) < bytes.size()) fail("cut short inside the IDX header");
    std::array<uint32_t, kCount> numbers{};
    for (size_t i = 0; i < bytes.size(); ++i) numbers[i / 4] = numbers[i / 4] << 8 | bytes[i];
    return numbers;
  }

  /// The rest of the file, which must have exactly `count` bytes. Grows as it reads: the header is not
  /// trusted with an allocation.
  std::vector<uint8_t> read_rest(uint64_t count) {
    constexpr uint64_t kStep = 16 << 20;
    constexpr uint64_t kMostInflated = 1032;  // times, of deflate: zlib's technical notes
    if (count / kMostInflated > file_bytes_) {
      fail(core::format("the header promises {} bytes of content, more than a file of {} bytes can hold", count,
                        file_bytes_));
    }
    const int64_t available = core::read_machine_facts().ram_available_bytes;  // 0: not known
    if (available > 0 && count > static_cast<uint64_t>(available)) {
      throw core::Error(
          core::ErrorKind::out_of_memory,
          core::format("{}: its content takes {} of memory, {} are free", core::printable(path_),
                       core::bytes_text(static_cast<double>(count)), core::bytes_text(static_cast<double>(available))),
          "write the images as files, or pack them: train pack");
    }
    std::vector<uint8_t> content;
    while (content.size() < count) {
      core::throw_if_stopped();
      const uint64_t before = content.size(), step = std::min(kStep, count - before);
      content.resize(before + step);
      const uint64_t got = read(content.data() + before, step);
      if (got < step) {
        fail(core::format("cut short: the header promises {} bytes of content, there are {}", count, before + got));
      }
    }
    uint8_t extra = 0;
    if (read(&extra, 1) != 0) fail(core::format("more content than the {} bytes that the header promises", count));
    return content;
  }

 private:
  [[noreturn]] void fail_reading() const {
    int code = 0;
    const char* const text = ::gzerror(file_, &code);
    if (code == Z_ERRNO) throw core::errno_error(errno, "read", core::printable(path_), core::ErrorKind::io);
    if (code == Z_BUF_ERROR) fail("cut short: the gzip stream has no end");
    fail(core::format("damaged gzip stream: {}", text));
  }

  std::string path_;
  gzFile file_ = nullptr;
  uint64_t file_bytes_ = 0;  ///< as it is stored
};

class IdxSource : public LeafSource {
 public:
  IdxSource(const std::string& images_path, const std::string& labels_path, std::vector<std::string> class_names)
      : path_(images_path) {
    class_names_ = std::move(class_names);
    read_images();
    read_labels(labels_path);
    core::Hasher hasher;
    hasher.add(core::format("idx {}x{} {} classes\n", height_, width_, class_names_.size()));
    for (const std::string& name : class_names_) hasher.add(name + "\n");
    hasher.add(pixels_.data(), pixels_.size());
    hasher.add(labels_.data(), labels_.size());
    fingerprint_ = hasher.hex();
  }

  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  int64_t label(int64_t index) const override { return labels_[static_cast<size_t>(index)]; }
  std::string name(int64_t index) const override { return core::format("{}#{}", path_, index); }
  std::string relative_name(int64_t index) const override { return core::format("#{}", index); }

  SourceMemory memory() const override { return {static_cast<int64_t>(labels_.size()), 0}; }

  std::string read(int64_t index, std::vector<uint8_t>&, SampleContent& content) const override {
    content.height = height_;
    content.width = width_;
    content.channels = 1;
    content.size = static_cast<uint64_t>(height_) * static_cast<uint64_t>(width_);
    content.bytes = pixels_.data() + static_cast<uint64_t>(index) * content.size;
    return "";
  }

 private:
  void read_images() {
    IdxFile file(path_);
    const auto [magic, count, height, width] = file.read_header<4>();
    if (magic != kImagesMagic)
      file.fail(core::format("magic 0x{:08x} instead of 0x{:08x} (images)", magic, kImagesMagic));
    if (count == 0) file.fail("holds 0 images");
    if (height == 0 || width == 0 || height > 65535 || width > 65535) {
      file.fail(core::format("images of {}x{} pixels", width, height));
    }
    height_ = static_cast<int>(height);
    width_ = static_cast<int>(width);
    images_ = count;
    pixels_ = file.read_rest(uint64_t{count} * height * width);
  }

  void read_labels(const std::string& path) {
    IdxFile file(path);
    const auto [magic, count] = file.read_header<2>();
    if (magic != kLabelsMagic)
      file.fail(core::format("magic 0x{:08x} instead of 0x{:08x} (labels)", magic, kLabelsMagic));
    if (count != images_) {
      file.fail(core::format("{} labels for the {} images of {}", count, images_, core::printable(path_)));
    }
    labels_ = file.read_rest(count);
    const auto bad =
        std::find_if(labels_.begin(), labels_.end(), [&](uint8_t label) { return label >= num_classes(); });
    if (bad == labels_.end()) return;
    throw core::Error(
        core::ErrorKind::data,
        core::format("{}: label {} of image {} is out of range: there are {} classes, 0 to {}", core::printable(path),
                     *bad, bad - labels_.begin(), num_classes(), num_classes() - 1),
        "if the data has more classes, say so with --num-classes");
  }

  std::string path_;
  std::vector<uint8_t> pixels_, labels_;
  uint32_t images_ = 0;
  int height_ = 0, width_ = 0;
};

}  // namespace

std::string find_idx_file(const std::string& directory, const std::string& split, const std::string& kind) {
  const std::string plain = directory + "/" + split + "-" + kind + "-ubyte";
  if (core::file_exists(plain)) return plain;
  return core::file_exists(plain + ".gz") ? plain + ".gz" : "";
}

std::vector<std::string> idx_class_names(const std::string& directory, int64_t classes) {
  std::string letters;
  for (const char c : directory) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  if (classes == 10 && letters.find("fashionmnist") != std::string::npos) {
    return {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"};
  }
  std::vector<std::string> names;
  for (int64_t i = 0; i < classes; ++i) names.push_back(std::to_string(i));
  return names;
}

std::shared_ptr<const Source> open_idx_split(const std::string& directory, const std::string& split,
                                             std::vector<std::string> class_names) {
  const std::string images = find_idx_file(directory, split, "images-idx3");
  const std::string labels = find_idx_file(directory, split, "labels-idx1");
  if (images.empty() || labels.empty()) {
    const char* const kind = images.empty() ? "images-idx3" : "labels-idx1";
    throw core::Error(
        core::ErrorKind::no_input,
        core::format("{}/{}-{}-ubyte[.gz] does not exist", core::printable(directory), core::printable(split), kind),
        "an IDX split has two files: <split>-images-idx3-ubyte[.gz] and <split>-labels-idx1-ubyte[.gz]");
  }
  return std::make_shared<IdxSource>(images, labels, std::move(class_names));
}

}  // namespace stoker::data
