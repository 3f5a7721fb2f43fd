// SPDX-License-Identifier: Apache-2.0
#include "data/arrays/pixel_source.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"
#include "core/system/machine.h"
#include "data/source.h"

namespace stoker::data {
namespace {

class PixelSource : public LeafSource {
 public:
  PixelSource(HeldPixels held, std::vector<std::string> class_names) : held_(std::move(held)) {
    class_names_ = std::move(class_names);
    core::Hasher hasher;
    const std::string depth = held_.channels == 1 ? "" : core::format("x{}", held_.channels);
    hasher.add(core::format("{} {}x{}{} {} classes\n", held_.kind, held_.height, held_.width, depth, num_classes()));
    for (const std::string& name : class_names_) hasher.add(name + "\n");
    hasher.add(held_.pixels.data(), held_.pixels.size());
    if (num_classes() <= 256) {
      const std::vector<uint8_t> bytes(held_.labels.begin(), held_.labels.end());
      hasher.add(bytes.data(), bytes.size());
    } else {
      hasher.add(held_.labels.data(), held_.labels.size() * sizeof(int32_t));
    }
    fingerprint_ = hasher.hex();
  }

  int64_t size() const override { return static_cast<int64_t>(held_.labels.size()); }
  int64_t label(int64_t index) const override { return held_.labels[static_cast<size_t>(index)]; }
  std::string name(int64_t index) const override { return core::format("{}#{}", held_.path, index); }
  std::string relative_name(int64_t index) const override { return core::format("#{}", index); }
  SourceMemory memory() const override { return {size() * static_cast<int64_t>(sizeof(int32_t)), 0}; }

  std::string read(int64_t index, std::vector<uint8_t>&, SampleContent& content) const override {
    content.height = held_.height;
    content.width = held_.width;
    content.channels = held_.channels;
    content.size = static_cast<uint64_t>(held_.height) * static_cast<uint64_t>(held_.width) *
                   static_cast<uint64_t>(held_.channels);
    content.bytes = held_.pixels.data() + static_cast<uint64_t>(index) * content.size;
    return "";
  }

 private:
  const HeldPixels held_;
};

}  // namespace

std::shared_ptr<const Source> make_pixel_source(HeldPixels held, const std::string& labels_path,
                                                std::vector<std::string> class_names) {
  const auto classes = static_cast<int64_t>(class_names.size());
  const auto bad = std::find_if(held.labels.begin(), held.labels.end(),
                                [&](int32_t label) { return label < 0 || label >= classes; });
  if (bad == held.labels.end()) return std::make_shared<PixelSource>(std::move(held), std::move(class_names));
  throw core::Error(core::ErrorKind::data,
                    core::format("{}: label {} of image {} is out of range: there are {} classes, 0 to {}",
                                 core::printable(labels_path), *bad, bad - held.labels.begin(), classes, classes - 1),
                    "if the data has more classes, set --num-classes");
}

void require_free_memory(const std::string& path, uint64_t bytes) {
  const int64_t available = core::read_machine_facts().ram_available_bytes;  // 0: not known
  if (available <= 0 || bytes <= static_cast<uint64_t>(available)) return;
  throw core::Error(
      core::ErrorKind::out_of_memory,
      core::format("{}: its content takes {} of memory, {} are free", core::printable(path),
                   core::bytes_text(static_cast<double>(bytes)), core::bytes_text(static_cast<double>(available))),
      "write the images as files, or pack them: train pack");
}

std::vector<std::string> numbered_classes(int64_t classes) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < classes; ++i) names.push_back(std::to_string(i));
  return names;
}

namespace {

constexpr char kNumpyHint[] = "in Python: np.save(path, np.ascontiguousarray(array))";

/// Bytes of a number of this type; 0: no number that is read here.
size_t width_of_type(const std::string& type) {
  if (type.size() < 2 || std::strchr("iufb", type[type.size() - 2]) == nullptr) return 0;
  const int digit = type.back() - '0';
  if (type[type.size() - 2] == 'f' && digit < 4) return 0;
  return digit == 1 || digit == 2 || digit == 4 || digit == 8 ? static_cast<size_t>(digit) : 0;
}

int64_t volume_of(const PythonArray& array) {
  int64_t volume = 1;
  for (const int64_t side : array.shape) {
    if (side < 0 || __builtin_mul_overflow(volume, side, &volume)) array.fail("its shape is damaged", kNumpyHint);
  }
  return volume;
}

void require_all_bytes(const PythonArray& array) {
  const size_t width = width_of_type(array.type);
  if (width == 0) return;  // refused by those who use it, who name the purpose
  const auto wanted = static_cast<uint64_t>(volume_of(array)) * width;
  if (array.bytes.size() == wanted) return;
  array.fail(
      core::format("{} bytes where its shape needs {}: it was cut short, or is damaged", array.bytes.size(), wanted),
      "get or write the file again");
}

/// Number `index`, whole or not.
double number_at(const PythonArray& array, size_t index) {
  const size_t width = width_of_type(array.type);
  const char kind = array.type[array.type.size() - 2];
  char raw[8] = {};
  std::memcpy(raw, array.bytes.data() + index * width, width);
  if (array.type[0] == '>') std::reverse(raw, raw + width);
  if (kind == 'f' && width == 4) {
    float value = 0;
    std::memcpy(&value, raw, sizeof value);
    return static_cast<double>(value);
  }
  if (kind == 'f') {
    double value = 0;
    std::memcpy(&value, raw, sizeof value);
    return value;
  }
  uint64_t bits = 0;
  std::memcpy(&bits, raw, sizeof bits);
  if (kind == 'i' && width < 8 && (bits >> (8 * width - 1) & 1) != 0) bits |= ~uint64_t{0} << 8 * width;
  return kind == 'i' ? static_cast<double>(static_cast<int64_t>(bits)) : static_cast<double>(bits);
}

std::string shape_words(const PythonArray& array) {
  std::string text;
  for (const int64_t side : array.shape) text += (text.empty() ? "" : ", ") + std::to_string(side);
  return "[" + text + "]";
}

/// The value of 'key': in the header of a .npy file.
std::string header_value(const PythonArray& array, const std::string& header, const std::string& key) {
  size_t at = header.find("'" + key + "'");
  if (at != std::string::npos) at = header.find(':', at);
  if (at == std::string::npos) array.fail(core::format("its header has no {}", key), kNumpyHint);
  at = header.find_first_not_of(' ', at + 1);
  if (at == std::string::npos) array.fail(core::format("its header has no {}", key), kNumpyHint);
  return header.substr(at);
}

/// UTF-8 as Python 3 pickles bytes for protocol 2, back to the bytes.
std::string latin1_bytes(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    const bool is_pair = byte >= 0xC0 && i + 1 < text.size();
    bytes += is_pair ? static_cast<char>((byte & 0x03) << 6 | (static_cast<uint8_t>(text[i + 1]) & 0x3F)) : text[i];
    i += is_pair;
  }
  return bytes;
}

}  // namespace

void PythonArray::fail(const std::string& cause, const std::string& hint) const {
  throw core::Error(core::ErrorKind::data, what + ": " + cause, hint);
}

PythonArray read_npy(std::string content, const std::string& what) {
  constexpr size_t kPrefix = 10;
  PythonArray array;
  array.what = what;
  if (content.size() < kPrefix + 2 || content.compare(0, 6, "\x93NUMPY") != 0) {
    array.fail("it is no NumPy array", kNumpyHint);
  }
  const auto byte = [&](size_t at) { return static_cast<size_t>(static_cast<uint8_t>(content[at])); };
  const bool is_long = content[6] > 1;  // 4 bytes of length instead of 2
  const size_t begin = is_long ? kPrefix + 2 : kPrefix;
  const size_t length = byte(8) | byte(9) << 8 | (is_long ? byte(10) << 16 | byte(11) << 24 : 0);
  if (length > content.size() - begin) array.fail("it was cut short in its header", "get or write the file again");
  const std::string header = content.substr(begin, length);
  const std::string type = header_value(array, header, "descr");
  if (type.empty() || type[0] != '\'') {
    array.fail("it holds records of several fields", "save one array of numbers: np.save(path, array['field'])");
  }
  array.type = type.substr(1, type.find('\'', 1) - 1);
  array.is_fortran = header_value(array, header, "fortran_order").compare(0, 4, "True") == 0;
  std::string sides = header_value(array, header, "shape");
  sides.resize(std::min(sides.find(')'), sides.size()));
  for (size_t at = sides.find_first_of("0123456789"); at != std::string::npos;
       at = sides.find_first_of("0123456789", at)) {
    int64_t side = 0;
    const auto [end, error] = std::from_chars(sides.data() + at, sides.data() + sides.size(), side);
    if (error != std::errc()) array.fail("its shape is damaged", kNumpyHint);
    array.shape.push_back(side);
    at = static_cast<size_t>(end - sides.data());
  }
  array.bytes = std::move(content);
  array.bytes.erase(0, begin + length);
  require_all_bytes(array);
  return array;
}

PythonArray array_in_pickle(const PickleTree& tree, ValueIndex index, const std::string& what) {
  PythonArray array;
  array.what = what;
  const PickleValue& value = tree.at(index);
  const auto refuse = [&] {
    array.fail("an array in it is written in a way that is not known here", "get the file again");
  };
  const auto name_of = [&](const PickleValue& opaque) {
    return opaque.kind == ValueKind::opaque ? tree.opaque_names[static_cast<size_t>(opaque.integer)] : std::string();
  };
  // (shape, dtype, fortran, bytes): the state behind numpy.core.multiarray._reconstruct, or other arguments in protocol
  // 5
  std::vector<ValueIndex> parts;
  if (core::ends_with(name_of(value), "multiarray._reconstruct") && value.items.size() == 2) {
    parts = tree.at(value.items[1]).items;
    if (parts.size() == 5) parts.erase(parts.begin());
  } else if (core::ends_with(name_of(value), "numeric._frombuffer") && value.items.size() == 1) {
    const std::vector<ValueIndex>& given = tree.at(value.items[0]).items;  // (bytes, dtype, shape, order)
    if (given.size() == 4) parts = {given[2], given[1], given[3], given[0]};
  }
  if (parts.size() != 4) refuse();
  for (const ValueIndex side : tree.at(parts[0]).items) array.shape.push_back(tree.at(side).integer);
  const PickleValue& type = tree.at(parts[1]);
  if (name_of(type) != "numpy.dtype" || type.items.empty() || tree.at(type.items[0]).items.empty()) refuse();
  array.type = "<" + std::string(tree.at(tree.at(type.items[0]).items[0]).text);
  const PickleValue& order = tree.at(parts[2]);
  array.is_fortran = order.kind == ValueKind::text ? order.text == "F" : order.integer != 0;
  const PickleValue& bytes = tree.at(parts[3]);
  if (bytes.kind == ValueKind::opaque && name_of(bytes) == "_codecs.encode" && !bytes.items.empty() &&
      !tree.at(bytes.items[0]).items.empty()) {
    array.bytes = latin1_bytes(tree.at(tree.at(bytes.items[0]).items[0]).text);
  } else if (bytes.kind == ValueKind::bytes || bytes.kind == ValueKind::text) {
    array.bytes = bytes.text;
  } else {
    refuse();
  }
  require_all_bytes(array);
  return array;
}

std::vector<int32_t> labels_in(const PythonArray& array) {
  constexpr char kLabelsHint[] =
      "labels are whole numbers from 0, one per image: np.unique(names, return_inverse=True)[1]";
  const bool is_hot = array.shape.size() == 2 && array.shape[1] > 1;
  if (array.shape.empty() || array.shape.size() > 2) {
    array.fail(core::format("labels of the shape {}", shape_words(array)), kLabelsHint);
  }
  if (width_of_type(array.type) == 0)
    array.fail(core::format("labels of the type '{}'", core::printable(array.type)), kLabelsHint);
  if (is_hot && array.is_fortran) array.fail("its numbers lie column by column", kNumpyHint);
  const auto count = static_cast<size_t>(array.shape[0]);
  const size_t columns = is_hot ? static_cast<size_t>(array.shape[1]) : 1;
  std::vector<int32_t> labels;
  for (size_t i = 0; i < count; ++i) {
    double label = is_hot ? -1 : number_at(array, i);
    for (size_t k = 0; is_hot && k < columns; ++k) {
      const double value = number_at(array, i * columns + k);
      if (value == 1 && label < 0) {
        label = static_cast<double>(k);
      } else if (value != 0) {
        array.fail(core::format("row {} is not a class: of {} columns one is 1 and the others are 0", i, columns),
                   kLabelsHint);
      }
    }
    if (!(label >= 0) || label != std::floor(label) || label > std::numeric_limits<int32_t>::max()) {
      array.fail(core::format("label {} of image {}", label, i), kLabelsHint);
    }
    labels.push_back(static_cast<int32_t>(label));
  }
  return labels;
}

std::vector<uint8_t> pixels_in(PythonArray array, int& height, int& width, int& channels) {
  constexpr char kPixelsHint[] =
      "images are bytes [N, H, W] or [N, H, W, 3]: np.save(path, (255 * x).round().astype('uint8'))";
  if (array.type.size() < 2 || array.type.substr(array.type.size() - 2) != "u1") {
    array.fail(core::format("images of the type '{}'", core::printable(array.type)),
               std::string(kPixelsHint) + " where x is in [0, 1]; an HDF5 file holds any numbers");
  }
  if (array.is_fortran) array.fail("its numbers lie column by column", kNumpyHint);
  const std::vector<int64_t>& shape = array.shape;
  const auto is_count = [](int64_t side) { return side == 1 || side == 3; };
  const bool is_last = shape.size() == 4 && is_count(shape[3]);
  if (shape.size() != 3 && (shape.size() != 4 || (!is_last && !is_count(shape[1])))) {
    array.fail(core::format("images of the shape {}", shape_words(array)), kPixelsHint);
  }
  const size_t first = shape.size() == 4 && !is_last ? 2 : 1;
  if (shape[0] == 0) array.fail("holds 0 images", kPixelsHint);
  if (shape[first] < 1 || shape[first + 1] < 1 || shape[first] > 65535 || shape[first + 1] > 65535) {
    array.fail(core::format("images of {}x{} pixels", shape[first + 1], shape[first]), kPixelsHint);
  }
  height = static_cast<int>(shape[first]);
  width = static_cast<int>(shape[first + 1]);
  channels = shape.size() == 3 ? 1 : static_cast<int>(is_last ? shape[3] : shape[1]);
  const auto* const bytes = reinterpret_cast<const uint8_t*>(array.bytes.data());
  if (shape.size() == 4 && !is_last) return channels_last(bytes, shape[0], channels, shape[2] * shape[3]);
  return {bytes, bytes + array.bytes.size()};
}

std::vector<uint8_t> channels_last(const uint8_t* planes, int64_t images, int channels, int64_t area) {
  std::vector<uint8_t> pixels(static_cast<size_t>(images * channels * area));
  for (int64_t i = 0; i < images; ++i) {
    for (int64_t c = 0; c < channels; ++c) {
      const uint8_t* const plane = planes + (i * channels + c) * area;
      for (int64_t p = 0; p < area; ++p) pixels[static_cast<size_t>((i * area + p) * channels + c)] = plane[p];
    }
  }
  return pixels;
}

}  // namespace stoker::data
