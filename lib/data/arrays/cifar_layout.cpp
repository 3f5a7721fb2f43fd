// SPDX-License-Identifier: Apache-2.0
// CIFAR-10 and CIFAR-100 as their archives unpack: the binary version (data_batch_1.bin, train.bin) and the pickles of
// Python (data_batch_1, train). Of CIFAR-100 the fine labels are learned.
#include <algorithm>
#include <limits>
#include <optional>

#include "core/error.h"
#include "core/format.h"
#include "core/system/file.h"
#include "core/system/stop_signal.h"
#include "data/arrays/numpy_array.h"
#include "data/arrays/pixel_source.h"
#include "data/layout.h"
#include "data/storage/byte_reader.h"
#include "data/storage/tree_walk.h"

namespace stoker::data {
namespace {

constexpr int64_t kCifarArea = 32 * 32, kCifarBytes = 3 * kCifarArea;
constexpr int kBatches = 5;
constexpr char kCifarHint[] =
    "unpack the archive again: cifar-10-binary.tar.gz, cifar-10-python.tar.gz, and those of cifar-100";

bool is_plain_file(const std::string& path) { return stamp_of(path).size >= 0; }

std::string whole_file(const std::string& path) {
  const FileBytes file(path);
  std::string content(file.size(), '\0');
  file.read(0, content.data(), content.size());
  return content;
}

/// The contents that a pickle should have. No command that loads it: that would run what it holds.
std::string as_cifar_step(const char* labels) {
  return core::format(
      "it is a dictionary of 'data', uint8 [N, 3072] from 0 to 255, and '{}', a list of N numbers; write it so "
      "where it was made, or {}",
      labels, kCifarHint);
}

/// A pickle of Python whose top is a dictionary; its keys and names are text or bytes.
class CifarPickle {
 public:
  explicit CifarPickle(const std::string& path) : what_(core::printable(path)), content_(whole_file(path)) {
    try {
      uint64_t consumed = 0;
      tree_ = read_pickle(content_, what_, consumed);
    } catch (const core::Error& error) {
      throw core::Error(error.kind(), error.what(), kCifarHint);
    }
  }

  /// The value of a key; nullptr: there is no such key.
  const ValueIndex* find(const char* key) const {
    const PickleValue& top = tree_.at(tree_.root);
    for (size_t i = 0; top.kind == ValueKind::dictionary && i + 1 < top.items.size(); i += 2) {
      if (bytes_in_pickle(tree_, top.items[i]) == key) return &top.items[i + 1];
    }
    return nullptr;
  }
  std::vector<std::string> names(const char* key) const {
    std::vector<std::string> names;
    const ValueIndex* const list = find(key);
    if (list == nullptr) return names;
    for (const ValueIndex item : tree_.at(*list).items) {
      names.push_back(bytes_in_pickle(tree_, item).value_or(""));
      if (names.back().empty()) return {};
    }
    return names;
  }
  /// Planes of bytes, [N, 3072].
  PythonArray data(const char* labels) const {
    const ValueIndex* const place = find("data");
    if (place == nullptr) fail("it has no entry 'data'", labels);
    PythonArray array;
    if (is_array_in_pickle(tree_, *place)) {
      array = array_in_pickle(tree_, *place, what_);
    } else {
      std::optional<std::string> bytes = bytes_in_pickle(tree_, *place);
      if (!bytes) fail("its 'data' is no array of NumPy and no bytes", labels);
      array.type = "|u1";
      array.shape = {static_cast<int64_t>(bytes->size()) / kCifarBytes, kCifarBytes};
      if (bytes->size() % kCifarBytes != 0) {
        fail(core::format("its 'data' has {} bytes, which are not whole images of {}", bytes->size(), kCifarBytes),
             labels);
      }
      array.bytes = *std::move(bytes);
    }
    const std::vector<int64_t>&shape = array.shape, rows = {shape.empty() ? 0 : shape[0], kCifarBytes};
    const bool are_images = shape == std::vector<int64_t>{rows[0], 32, 32, 3};
    if (array.type.substr(1) != "u1" || rows[0] == 0 ||
        (shape != rows && !are_images && shape != std::vector<int64_t>{rows[0], 3, 32, 32})) {
      fail(core::format("its 'data' is {}", array.words()), labels);
    }
    if (are_images) array.bytes = planes_of(array.bytes, rows[0]);
    array.shape = rows;
    return array;
  }
  std::vector<int32_t> labels(const char* key) const {
    const ValueIndex* const place = find(key);
    if (place == nullptr) fail(core::format("it has no entry '{}'", key), key);
    if (is_array_in_pickle(tree_, *place)) return labels_in(array_in_pickle(tree_, *place, what_));
    std::vector<int32_t> labels;
    for (const ValueIndex item : tree_.at(*place).items) {
      const std::optional<int64_t> label = integer_in_pickle(tree_, item);
      if (!label || *label < 0 || *label > std::numeric_limits<int32_t>::max()) {
        fail(core::format("entry {} of '{}' is no whole number from 0", labels.size(), key), key);
      }
      labels.push_back(static_cast<int32_t>(*label));
    }
    return labels;
  }
  [[noreturn]] void fail(const std::string& cause, const char* labels) const {
    throw core::Error(core::ErrorKind::data, what_ + ": " + cause, as_cifar_step(labels));
  }

 private:
  static std::string planes_of(const std::string& pixels, int64_t images) {
    std::string planes(pixels.size(), '\0');
    for (int64_t i = 0; i < images; ++i) {
      for (int64_t at = 0; at < kCifarBytes; ++at) {
        planes[static_cast<size_t>(i * kCifarBytes + at % 3 * kCifarArea + at / 3)] =
            pixels[static_cast<size_t>(i * kCifarBytes + at)];
      }
    }
    return planes;
  }

  const std::string what_, content_;
  PickleTree tree_;
};

class CifarLayout : public Layout {
 public:
  explicit CifarLayout(const config::DataOptions& options) : options_(options) {
    const std::string& folder = options.data_dir;
    has_hundred_ = is_plain_file(folder + "/fine_label_names.txt") || is_plain_file(folder + "/meta");
  }

  bool has_split(const std::string& split) const override { return !parts_of(split).empty(); }

  std::vector<std::string> class_names(const std::string&) const override {
    std::vector<std::string> names;
    const std::string text_path = place(has_hundred_ ? "fine_label_names.txt" : "batches.meta.txt");
    const std::string pickle_path = place(has_hundred_ ? "meta" : "batches.meta");
    if (is_plain_file(text_path)) {
      for (const std::string& name : core::lines_of(whole_file(text_path))) {
        if (!name.empty()) names.push_back(name);
      }
    } else if (is_plain_file(pickle_path)) {
      names = CifarPickle(pickle_path).names(has_hundred_ ? "fine_label_names" : "label_names");
    }
    return names.empty() ? numbered_classes(has_hundred_ ? 100 : 10) : names;
  }

  std::shared_ptr<const Source> open(const std::string& split, const std::vector<std::string>& class_names, bool,
                                     std::vector<std::string>& notes) const override {
    const std::vector<std::string> parts = parts_of(split);
    if (!has_hundred_ && split == options_.train_split && parts.size() < kBatches) {
      notes.push_back(core::format("{}: {} of {} batches of CIFAR-10 are there", split, parts.size(), kBatches));
    }
    HeldPixels held;
    held.kind = has_hundred_ ? "cifar100" : "cifar10";
    held.path = parts.size() == 1 ? parts.front() : place(split);
    held.height = held.width = 32;
    held.channels = 3;
    for (const std::string& path : parts) {
      core::throw_if_stopped();
      core::ends_with(path, ".bin") ? add_records(path, held) : add_pickle(path, held);
    }
    return make_pixel_source(std::move(held), parts.front(), class_names);
  }

 private:
  std::string place(const std::string& name) const { return options_.data_dir + "/" + name; }

  std::vector<std::string> parts_of(const std::string& split) const {
    std::vector<std::string> parts;
    const bool is_train = split == options_.train_split;
    if (is_train ? split != "train" : split != "test") return parts;
    std::vector<std::string> stems;
    if (has_hundred_) {
      stems = {split};
    } else if (!is_train) {
      stems = {"test_batch"};
    } else {
      for (int i = 1; i <= kBatches; ++i) stems.push_back(core::format("data_batch_{}", i));
    }
    for (const std::string& stem : stems) {
      for (const char* const ending : {".bin", ""}) {
        if (!is_plain_file(place(stem + ending))) continue;
        parts.push_back(place(stem + ending));
        break;
      }
    }
    return parts;
  }

  void add_records(const std::string& path, HeldPixels& held) const {
    const int64_t before = has_hundred_ ? 2 : 1;  // of CIFAR-100 the coarse label comes first
    const std::string content = whole_file(path);
    const auto record = static_cast<size_t>(before + kCifarBytes);
    if (content.empty() || content.size() % record != 0) {
      throw core::Error(core::ErrorKind::data,
                        core::format("{}: {} bytes are not whole records of {}: it was cut short",
                                     core::printable(path), content.size(), record),
                        kCifarHint);
    }
    for (size_t at = 0; at < content.size(); at += record) {
      const auto* const bytes = reinterpret_cast<const uint8_t*>(content.data()) + at;
      held.labels.push_back(bytes[before - 1]);
      add_images(bytes + before, 1, held);
    }
  }

  void add_pickle(const std::string& path, HeldPixels& held) const {
    const CifarPickle file(path);
    const char* const key = has_hundred_ ? "fine_labels" : "labels";
    const PythonArray data = file.data(key);
    const std::vector<int32_t> labels = file.labels(key);
    if (data.shape[0] != static_cast<int64_t>(labels.size())) {
      file.fail(core::format("it has {} labels for {} images", labels.size(), data.shape[0]), key);
    }
    held.labels.insert(held.labels.end(), labels.begin(), labels.end());
    add_images(reinterpret_cast<const uint8_t*>(data.bytes.data()), data.shape[0], held);
  }

  static void add_images(const uint8_t* planes, int64_t images, HeldPixels& held) {
    const std::vector<uint8_t> pixels = channels_last(planes, images, 3, kCifarArea);
    held.pixels.insert(held.pixels.end(), pixels.begin(), pixels.end());
  }

  const config::DataOptions options_;
  bool has_hundred_ = false;
};

}  // namespace

std::unique_ptr<Layout> make_cifar_layout(const config::DataOptions& options) {
  return std::make_unique<CifarLayout>(options);
}

}  // namespace stoker::data
