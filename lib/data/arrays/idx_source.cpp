// SPDX-License-Identifier: Apache-2.0
#include "data/arrays/idx_source.h"

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
#include "core/open_retrying.h"
#include "core/system/file.h"
#include "core/system/stop_signal.h"
#include "data/archive/zip_directory.h"
#include "data/arrays/pixel_source.h"
#include "data/layout.h"
#include "data/storage/tree_walk.h"

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
  IdxFile& operator=(IdxFile&&) = delete;  // not copied, not moved

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

  /// The rest of the file, which must have exactly `count` bytes: at most what the file can hold and memory has free.
  std::vector<uint8_t> read_rest(uint64_t count) {
    constexpr uint64_t kStep = 16 << 20;
    if (count / kMostInflated > file_bytes_) {
      fail(core::format("the header promises {} bytes of content, more than a file of {} bytes can hold", count,
                        file_bytes_));
    }
    require_free_memory(path_, count);
    std::vector<uint8_t> content;
    content.reserve(count);  // nothing is touched yet; growing would hold it twice for a while
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

struct IdxImages {
  uint32_t count = 0;
  HeldPixels held;
};

IdxImages read_images(const std::string& path) {
  IdxFile file(path);
  const auto [magic, count, height, width] = file.read_header<4>();
  if (magic != kImagesMagic) {
    file.fail(core::format("magic 0x{:08x} instead of 0x{:08x} (images)", magic, kImagesMagic));
  }
  if (count == 0) file.fail("holds 0 images");
  if (height == 0 || width == 0 || height > 65535 || width > 65535) {
    file.fail(core::format("images of {}x{} pixels", width, height));
  }
  IdxImages images;
  images.count = count;
  images.held.kind = "idx";
  images.held.path = path;
  images.held.height = static_cast<int>(height);
  images.held.width = static_cast<int>(width);
  images.held.pixels = file.read_rest(uint64_t{count} * height * width);
  return images;
}

std::vector<uint8_t> read_labels(const std::string& path, const std::string& of_images, uint32_t images) {
  IdxFile file(path);
  const auto [magic, count] = file.read_header<2>();
  if (magic != kLabelsMagic)
    file.fail(core::format("magic 0x{:08x} instead of 0x{:08x} (labels)", magic, kLabelsMagic));
  if (!of_images.empty() && count != images) {
    file.fail(core::format("{} labels for the {} images of {}", count, images, core::printable(of_images)));
  }
  return file.read_rest(count);
}

/// Possible names of a file of a split: as the makers do, and as Windows unpacks it. `kind` is "images-idx3".
std::vector<std::string> endings_of(const std::string& split, const std::string& kind) {
  std::string dotted = kind;
  dotted[kind.find('-')] = '.';
  return {split + "-" + kind + "-ubyte", split + "-" + dotted + "-ubyte"};
}

/// "train-images-idx" of Train_Images.IDX3-ubyte: names in one spelling.
std::string idx_spelling(const std::string& name) {
  std::string text = core::lower_case(name);
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '_' || c == '.' || c == ' '; }, '-');
  return text;
}

/// The file itself, or one in a folder of its name, as some programs unpack.
std::string file_called(const std::string& path) {
  if (!is_directory(path)) return core::file_exists(path) ? path : "";
  for (const std::string& name : names_in(path)) {
    if (core::ends_with(name, "-ubyte") && !is_directory(path + "/" + name)) return path + "/" + name;
  }
  return "";
}

class IdxLayout : public Layout {
 public:
  explicit IdxLayout(const config::DataOptions& options) : options_(options) {}

  bool has_split(const std::string& split) const override {
    return !find_idx_file(options_.data_dir, split, "images-idx3").empty();
  }

  std::vector<std::string> class_names(const std::string& train_split) const override {
    constexpr int64_t kUsual = 10;  // of MNIST and its kin; the files have no number
    if (!options_.num_classes.is_auto()) return idx_class_names(options_.data_dir, options_.num_classes.value());
    const std::string path = find_idx_file(options_.data_dir, train_split, "labels-idx1");
    int64_t classes = kUsual;
    if (path.find("emnist-") != std::string::npos) {  // letters and classes of characters: up to 62
      for (const uint8_t label : read_labels(path, "", 0)) classes = std::max<int64_t>(classes, label + 1);
    }
    return idx_class_names(options_.data_dir, classes);
  }

  std::shared_ptr<const Source> open(const std::string& split, const std::vector<std::string>& class_names, bool,
                                     std::vector<std::string>& notes) const override {
    if (find_idx_file(options_.data_dir, split, "images-idx3").find("emnist-") != std::string::npos) {
      notes.push_back(split + ": EMNIST stores its images with rows and columns exchanged; they are used as stored");
    }
    return open_idx_split(options_.data_dir, split, class_names);
  }

 private:
  const config::DataOptions options_;
};

}  // namespace

std::string find_idx_file(const std::string& directory, const std::string& split, const std::string& kind) {
  std::vector<std::string> prefixed;  // EMNIST's: emnist-letters-train-images-idx3-ubyte
  const std::vector<std::string> names = names_in(directory);
  for (const std::string& ending : endings_of(split, kind)) {
    for (const char* const packed : {"", ".gz"}) {
      const std::string path = file_called(directory + "/" + ending + packed);
      if (!path.empty()) return path;
      for (const std::string& name : names) {
        if (core::ends_with(name, "-" + ending + packed)) prefixed.push_back(name);
      }
    }
  }
  std::sort(prefixed.begin(), prefixed.end());
  if (prefixed.empty()) {
    const std::string begin = idx_spelling(split + "-" + kind.substr(0, kind.size() - 1));  // without the number
    for (const std::string& name : names) {
      if (idx_spelling(name).rfind(begin, 0) == 0 && !has_image_name(name)) return file_called(directory + "/" + name);
    }
    return "";
  }
  const auto stem = [&](const std::string& name) { return name.substr(0, name.find("-" + split + "-")); };
  if (stem(prefixed.front()) == stem(prefixed.back())) return file_called(directory + "/" + prefixed.front());
  const std::string first = stem(prefixed.front());
  throw core::Error(core::ErrorKind::no_input,
                    core::format("{} holds several data sets of IDX files: {}", core::printable(directory),
                                 core::list_text(prefixed, 4)),
                    core::format("choose one: --train-split {0}-train --val-split {0}-test", core::printable(first)));
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
  return numbered_classes(classes);
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
  IdxImages read = read_images(images);
  const std::vector<uint8_t> bytes = read_labels(labels, images, read.count);
  read.held.labels.assign(bytes.begin(), bytes.end());
  return make_pixel_source(std::move(read.held), labels, std::move(class_names));
}

std::unique_ptr<Layout> make_idx_layout(const config::DataOptions& options) {
  return std::make_unique<IdxLayout>(options);
}

}  // namespace stoker::data
