// SPDX-License-Identifier: Apache-2.0
#include "data/arrays/numpy_array.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "core/format.h"
#include "data/arrays/pixel_source.h"
#include "data/image/pixels/image_buffer.h"

namespace stoker::data {
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

/// "int64" of "<i8".
std::string type_words(const std::string& type) {
  const std::string code = type.substr(type.find_first_not_of("<>|=") == 1 ? 1 : 0);
  if (code == "O") return "object";
  if (code[0] == 'U' || code[0] == 'S') return "text";
  if (code == "b1") return "bool";
  const bool is_number = code.size() == 2 && std::strchr("iufc", code[0]) != nullptr && code[1] > '0' && code[1] <= '8';
  if (!is_number) return "'" + core::printable(type) + "'";
  const char* const name = code[0] == 'i' ? "int" : code[0] == 'u' ? "uint" : code[0] == 'f' ? "float" : "complex";
  return name + std::to_string(8 * (code[1] - '0'));
}

/// A text as Python reads it back.
std::string python_text(const std::string& text) {
  std::string quoted;
  for (const char byte : text) quoted += byte == '\'' || byte == '\\' ? std::string("\\") + byte : std::string(1, byte);
  return "'" + core::printable(quoted) + "'";
}

/// The line of Python that writes an array, which is x there, as `value`; `first` comes before it.
std::string python_step(const PythonArray& array, const std::string& value, const std::string& first = "") {
  const std::string change = first.empty() ? "" : "x = " + first + "; ";
  const bool runs_code = type_words(array.type) == "object";  // np.load() would have to be allowed to
  if (array.path.empty() || runs_code) {
    return core::format("write it anew, in Python{}: {}x = {}", runs_code ? " where it was made" : "", change, value);
  }
  const std::string file = python_text(array.path), word = core::shell_word(array.path);
  // The file as it was is kept; cp -n never writes over an earlier copy.
  const std::string run = core::format("cp -n {0} {0}.orig; python3 -c \"import numpy as np; ", word);
  if (array.member.empty())
    return core::format("{0}x = np.load({1}); {2}np.save({1}, {3})\"", run, file, change, value);
  const std::string member = python_text(array.member.substr(0, array.member.rfind(".npy")));
  return core::format("{4}d = dict(np.load({0})); x = d[{1}]; {2}d[{1}] = {3}; np.savez({0}, **d)\"", file, member,
                      change, value, run);
}

/// Numbers that lie column by column, row by row.
void lay_by_rows(PythonArray& array) {
  const size_t width = width_of_type(array.type), sides = array.shape.size();
  if (width == 0 || sides < 2 || array.bytes.empty()) return;  // the first are refused by those who use them
  std::vector<int64_t> place(sides, 0), step(sides, 1);
  for (size_t i = 1; i < sides; ++i) step[i] = step[i - 1] * array.shape[i - 1];
  std::string rows(array.bytes.size(), '\0');
  int64_t from = 0;
  for (size_t to = 0; to < rows.size(); to += width) {
    std::memcpy(rows.data() + to, array.bytes.data() + static_cast<size_t>(from) * width, width);
    for (size_t i = sides; i-- > 0;) {
      from += step[i];
      if (++place[i] < array.shape[i]) break;
      from -= step[i] * array.shape[i];
      place[i] = 0;
    }
  }
  array.bytes = std::move(rows);
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

/// The class or function that an opaque value is or was made by.
std::string name_of(const PickleTree& tree, const PickleValue& value) {
  return value.kind == ValueKind::opaque ? tree.opaque_names[static_cast<size_t>(value.integer)] : std::string();
}

/// The arguments that an opaque value was made of; nullptr: it was not called.
const std::vector<ValueIndex>* arguments_of(const PickleTree& tree, const PickleValue& value) {
  return value.kind == ValueKind::opaque && !value.items.empty() ? &tree.at(value.items[0]).items : nullptr;
}

/// "<u1" of a numpy.dtype: its argument, and the order of bytes in its state; empty: it is none.
std::string type_in_pickle(const PickleTree& tree, ValueIndex index) {
  const PickleValue& type = tree.at(index);
  const std::vector<ValueIndex>* const given = arguments_of(tree, type);
  if (name_of(tree, type) != "numpy.dtype" || given == nullptr || given->empty()) return "";
  const std::string code = bytes_in_pickle(tree, given->front()).value_or("");
  if (code.empty()) return "";
  const bool has_state = type.items.size() > 1 && tree.at(type.items[1]).items.size() > 1;
  const bool is_big = has_state && bytes_in_pickle(tree, tree.at(type.items[1]).items[1]) == ">";
  return (is_big ? ">" : "<") + code;
}

/// The places of shape, type, order and bytes of an array: the state behind numpy.core.multiarray._reconstruct, or
/// other arguments in protocol 5; none where it is written otherwise.
std::vector<ValueIndex> parts_of_array(const PickleTree& tree, const PickleValue& value) {
  std::vector<ValueIndex> parts;
  const std::vector<ValueIndex>* const given = arguments_of(tree, value);
  if (core::ends_with(name_of(tree, value), "multiarray._reconstruct") && value.items.size() == 2) {
    parts = tree.at(value.items[1]).items;
    if (parts.size() == 5) parts.erase(parts.begin());
  } else if (core::ends_with(name_of(tree, value), "numeric._frombuffer") && given != nullptr && given->size() == 4) {
    parts = {(*given)[2], (*given)[1], (*given)[3], (*given)[0]};  // of (bytes, type, shape, order)
  }
  if (parts.size() != 4) parts.clear();
  return parts;
}

}  // namespace

void PythonArray::fail(const std::string& cause, const std::string& hint) const {
  throw core::Error(core::ErrorKind::data, what + ": " + cause, hint);
}

std::string PythonArray::words() const { return type_words(type) + " " + shape_words(*this); }

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
  const bool is_fortran = header_value(array, header, "fortran_order").compare(0, 4, "True") == 0;
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
  if (is_fortran) lay_by_rows(array);
  return array;
}

std::optional<std::string> bytes_in_pickle(const PickleTree& tree, ValueIndex index) {
  const PickleValue& value = tree.at(index);
  if (value.kind == ValueKind::bytes || value.kind == ValueKind::text) return std::string(value.text);
  const std::vector<ValueIndex>* const given = arguments_of(tree, value);
  if (given == nullptr) return std::nullopt;
  const std::string name = name_of(tree, value);
  const std::string module = name.substr(0, name.rfind('.')), function = name.substr(name.rfind('.') + 1);
  const bool makes_bytes =
      (module == "__builtin__" || module == "builtins") && (function == "bytes" || function == "bytearray");
  if (makes_bytes && given->empty()) return std::string();
  if (makes_bytes && given->size() == 1 && tree.at(given->front()).kind != ValueKind::text) {
    const PickleValue& inner = tree.at(given->front());
    if (inner.kind == ValueKind::bytes) return std::string(inner.text);
    if (name_of(tree, inner) == "_codecs.encode") return bytes_in_pickle(tree, given->front());
  }
  if ((!makes_bytes && name != "_codecs.encode") || given->size() != 2) return std::nullopt;
  const PickleValue &text = tree.at((*given)[0]), &encoding = tree.at((*given)[1]);
  if (text.kind != ValueKind::text || (encoding.text != "latin1" && encoding.text != "latin-1")) return std::nullopt;
  return latin1_bytes(text.text);
}

std::optional<int64_t> integer_in_pickle(const PickleTree& tree, ValueIndex index) {
  const PickleValue& value = tree.at(index);
  if (value.kind == ValueKind::integer || value.kind == ValueKind::boolean) return value.integer;
  const std::vector<ValueIndex>* const given = arguments_of(tree, value);
  if (given == nullptr || given->size() != 2 || !core::ends_with(name_of(tree, value), "multiarray.scalar")) {
    return std::nullopt;
  }
  PythonArray one;
  one.type = type_in_pickle(tree, given->front());
  one.bytes = bytes_in_pickle(tree, given->back()).value_or("");
  if (width_of_type(one.type) == 0 || one.bytes.size() != width_of_type(one.type)) return std::nullopt;
  const double number = number_at(one, 0);
  if (!(std::fabs(number) < 1e9) || number != std::floor(number)) return std::nullopt;
  return static_cast<int64_t>(number);
}

bool is_array_in_pickle(const PickleTree& tree, ValueIndex index) {
  return !parts_of_array(tree, tree.at(index)).empty();
}

PythonArray array_in_pickle(const PickleTree& tree, ValueIndex index, const std::string& what) {
  PythonArray array;
  array.what = what;
  const auto refuse = [&] {
    array.fail("an array in it is written in a way that is not known here", "get the file again");
  };
  const std::vector<ValueIndex> parts = parts_of_array(tree, tree.at(index));
  if (parts.empty()) refuse();
  for (const ValueIndex side : tree.at(parts[0]).items) {
    const std::optional<int64_t> whole = integer_in_pickle(tree, side);
    if (!whole) refuse();
    array.shape.push_back(*whole);
  }
  array.type = type_in_pickle(tree, parts[1]);
  std::optional<std::string> bytes = bytes_in_pickle(tree, parts[3]);
  if (array.type.empty() || !bytes) refuse();
  array.bytes = *std::move(bytes);
  require_all_bytes(array);
  const PickleValue& order = tree.at(parts[2]);
  if (order.kind == ValueKind::text ? order.text == "F" : order.integer != 0) lay_by_rows(array);
  return array;
}

std::vector<int32_t> labels_in(const PythonArray& array) {
  const auto refuse = [&](const std::string& cause) {
    array.fail(cause + ", of " + array.words(), "labels are whole numbers from 0, one per image; " +
                                                    python_step(array, "np.unique(x, return_inverse=True)[1]") +
                                                    ", where each split has all classes");
  };
  const bool is_hot = array.shape.size() == 2 && array.shape[1] > 1;
  if (array.shape.empty() || array.shape.size() > 2) {
    array.fail("labels of " + array.words(),
               "labels are [N] or one-hot [N, classes]; " + python_step(array, "x.reshape(len(x), -1)"));
  }
  if (width_of_type(array.type) == 0) refuse("its labels are no numbers");
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
                   "probabilities and scores become classes, " + python_step(array, "x.argmax(axis=1)"));
      }
    }
    if (!(label >= 0) || label != std::floor(label) || label > std::numeric_limits<int32_t>::max()) {
      refuse(core::format("label {} of image {}", label, i));
    }
    labels.push_back(static_cast<int32_t>(label));
  }
  return labels;
}

namespace {

/// The Python that makes bytes of numbers of another type.
std::string as_bytes_step(const PythonArray& array, std::string& range) {
  if (width_of_type(array.type) == 0) return "(255 * x.astype('float32')).round().astype('uint8')";
  double least = std::numeric_limits<double>::infinity(), most = -least;
  const size_t count = array.bytes.size() / width_of_type(array.type);
  for (size_t i = 0; i < count; ++i) {
    const double value = number_at(array, i);
    if (value < least) least = value;
    if (value > most) most = value;
  }
  range = core::format(", values {:.6g} to {:.6g}", least, most);
  const bool is_real = array.type[array.type.size() - 2] == 'f';
  if (is_real && least >= 0 && most <= 1) return "(255 * x).round().astype('uint8')";
  if (least >= 0 && most <= 255) return is_real ? "x.round().astype('uint8')" : "x.astype('uint8')";
  if (!is_real && least >= 0 && most > 4095 && most <= 65535) return "(x // 256).astype('uint8')";
  if (is_real && least >= -1 && most <= 1) return "np.interp(x, (-1, 1), (0, 255)).round().astype('uint8')";
  return core::format("np.interp(x, ({:.6g}, {:.6g}), (0, 255)).round().astype('uint8')", least, most);
}

bool is_depth(int64_t channels) { return channels == 1 || channels == 3 || channels == 4; }

/// The Python that makes images of an array of another shape; empty: there is no usual way.
std::string as_images_step(const std::vector<int64_t>& shape) {
  constexpr int64_t kMostNumbers = int64_t{1} << 40;  // of an image; a header may claim any
  if (shape.size() == 2 && shape[1] <= kMostNumbers) {
    for (const int64_t channels : {1, 3}) {
      const auto side = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(shape[1] / channels))));
      if (side < 1 || side * side * channels != shape[1]) continue;
      return core::format("x.reshape(-1, {}{}, {})", channels == 1 ? "" : "3, ", side, side);
    }
  }
  if (shape.size() != 4) return "";
  if (is_depth(shape[2])) return "x.transpose(3, 0, 1, 2)";  // [H, W, C, N] of MATLAB
  return shape[3] == 2 ? "x[..., 0]" : shape[3] < shape[1] ? "x[..., :3]" : "x[:, :3]";
}

}  // namespace

std::vector<uint8_t> pixels_in(PythonArray array, int& height, int& width, int& channels) {
  const std::vector<int64_t>& shape = array.shape;
  const bool are_bools = type_words(array.type) == "bool";
  const auto is_colour = [](int64_t side) { return side == 1 || side == 3; };
  const bool has_shape = shape.size() == 3 || (shape.size() == 4 && (is_depth(shape[3]) || is_depth(shape[1])));
  if (shape.empty() || shape[0] == 0) array.fail("it holds 0 images, as " + array.words(), kNumpyHint);
  if ((type_words(array.type) != "uint8" && !are_bools) || !has_shape) {
    std::string range;
    const std::string value = type_words(array.type) == "uint8" ? "x" : as_bytes_step(array, range);
    const std::string first = has_shape ? "" : as_images_step(shape);
    const std::string cause = "images of " + array.words() + range;
    if (type_words(array.type) == "object" || (!has_shape && first.empty())) {
      array.fail(cause,
                 "images are uint8 [N, H, W] or [N, H, W, 3]: write images of several sizes, and videos, as files "
                 "of class folders");
    }
    array.fail(cause, "images are uint8 [N, H, W] or [N, H, W, 3]; " + python_step(array, value, first) +
                          ", and the same, with the same numbers, for each split");
  }
  const bool is_last = shape.size() == 4 && (is_colour(shape[3]) || (!is_colour(shape[1]) && shape[3] == 4));
  const size_t first = shape.size() == 4 && !is_last ? 2 : 1;
  if (shape[first] < 1 || shape[first + 1] < 1 || shape[first] > 65535 || shape[first + 1] > 65535) {
    array.fail(core::format("images of {}x{} pixels", shape[first + 1], shape[first]),
               "images have 1 to 65,535 pixels on each side");
  }
  height = static_cast<int>(shape[first]);
  width = static_cast<int>(shape[first + 1]);
  channels = shape.size() == 3 ? 1 : static_cast<int>(is_last ? shape[3] : shape[1]);
  const auto* const bytes = reinterpret_cast<const uint8_t*>(array.bytes.data());
  std::vector<uint8_t> pixels = shape.size() == 4 && !is_last
                                    ? channels_last(bytes, shape[0], channels, shape[2] * shape[3])
                                    : std::vector<uint8_t>(bytes, bytes + array.bytes.size());
  if (are_bools) {
    for (uint8_t& pixel : pixels) pixel = pixel == 0 ? 0 : 255;
  }
  if (channels != 4) return pixels;
  channels = 3;
  std::vector<uint8_t> colours(pixels.size() / 4 * 3);
  convert_row(pixels.data(), static_cast<int64_t>(pixels.size() / 4), 4, /*use_alpha=*/true, channels, colours.data());
  return colours;
}

}  // namespace stoker::data
