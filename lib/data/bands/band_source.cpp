// SPDX-License-Identifier: Apache-2.0
#include "data/bands/band_source.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/format.h"
#include "core/system/stop_signal.h"
#include "data/image/tiff/tiff_file.h"
#include "data/source.h"
#include "data/storage/byte_reader.h"

namespace stoker::data {
namespace {

class BandSource : public ForwardingSource {
 public:
  BandSource(std::shared_ptr<const Source> files, const SampleShape& shape)
      : ForwardingSource(std::move(files)), shape_(shape) {}

  SampleShape fixed_shape() const override { return shape_; }
  /// Samples of a fixed size are taken as they are.
  RegionOfInterest region(int64_t /*index*/) const override { return {}; }

  std::string read(int64_t index, std::vector<uint8_t>& buffer, SampleContent& content) const override {
    using Clock = std::chrono::steady_clock;
    thread_local std::vector<uint8_t> encoded;
    thread_local BandScratch scratch;
    SampleContent file;
    if (std::string cause = behind().read(index, encoded, file); !cause.empty()) return cause;
    const Clock::time_point start = Clock::now();
    const auto bytes = static_cast<size_t>(shape_.image_bytes());
    if (buffer.size() < bytes) buffer.resize(bytes);
    if (std::string cause = decode_bands(file.bytes, file.size, shape_, scratch, buffer.data()); !cause.empty()) {
      return cause;
    }
    content.set_pixels(buffer.data(), shape_);
    content.decode_nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
    return "";
  }

 private:
  /// The head of a file decodes to nothing.
  std::string read_head(int64_t index, int64_t, std::vector<uint8_t>& buffer, SampleContent& content) const override {
    return read(index, buffer, content);
  }

  const SampleShape shape_;
};

bool has_tiff_name(const std::string& path) {
  const std::string name = core::lower_case(path);
  return core::ends_with(name, ".tif") || core::ends_with(name, ".tiff");
}

/// A shape, how many of the files that were looked at have it, and the first of them.
struct SeenShape {
  SampleShape shape;
  int64_t files = 0, first = 0;
};

/// The kind of some files of a list.
struct SeenFiles {
  std::vector<SeenShape> shapes;
  int64_t others = 0;   ///< TIFF files that hold pictures, or nothing recognizable
  std::string problem;  ///< cause of the first file of bands that is not read
};

SeenFiles look_at(const Source& files) {
  constexpr int64_t kLookedAt = 25;
  SeenFiles seen;
  std::vector<uint8_t> buffer;
  const int64_t count = std::min(kLookedAt, files.size());
  for (int64_t i = 0; i < count; ++i) {
    core::throw_if_stopped();
    const int64_t index = i * files.size() / count;
    if (!has_tiff_name(files.name(index))) continue;
    SampleContent content;
    if (!files.read(index, buffer, content).empty()) continue;
    SampleShape shape;
    std::string problem;
    if (!read_band_header(content.bytes, content.size, shape, problem)) {
      if (!problem.empty() && seen.problem.empty()) seen.problem = core::printable(files.name(index)) + ": " + problem;
      seen.others += problem.empty();
      continue;
    }
    const auto same = std::find_if(seen.shapes.begin(), seen.shapes.end(),
                                   [&](const SeenShape& other) { return other.shape == shape; });
    if (same == seen.shapes.end()) {
      seen.shapes.push_back({shape, 1, index});
    } else {
      ++same->files;
    }
  }
  return seen;
}

}  // namespace

std::shared_ptr<const Source> as_bands(std::shared_ptr<const Source> files) {
  const SeenFiles seen = look_at(*files);
  int64_t of_bands = 0;
  for (const SeenShape& shape : seen.shapes) of_bands += shape.files;
  if (of_bands == 0 && seen.others == 0 && !seen.problem.empty()) {
    throw core::Error(core::ErrorKind::data, seen.problem,
                      "multi-band TIFF files hold whole numbers of 8 or 16 bits; HDF5 files hold any numbers");
  }
  if (of_bands <= seen.others) return files;
  const auto most = std::max_element(seen.shapes.begin(), seen.shapes.end(),
                                     [](const SeenShape& a, const SeenShape& b) { return a.files < b.files; });
  return std::make_shared<BandSource>(std::move(files), most->shape);
}

namespace {

constexpr uint64_t kMaxBands = 1024, kLongestSide = 65535, kLargestTile = 8192, kMaxBandBytes = uint64_t{1} << 30;
/// The highest compression of a file: a header that promises more is not an image, whatever follows.
constexpr uint64_t kMaxBytesPerByte = 5000;

bool holds_bands(const TiffDirectory& directory) {
  constexpr uint64_t kGray = 1, kRgb = 2;
  const bool is_gray = directory.colour_kind <= kGray, is_rgb = directory.colour_kind == kRgb;
  if (!is_gray && !is_rgb) return false;
  if (directory.samples == 2) return is_gray && directory.extra == 0;
  if (directory.samples == 4) return directory.extra == 0 || (is_gray && directory.extra < 0);
  return directory.samples > 4;
}

std::string problem_of(const TiffDirectory& directory, uint64_t file_size) {
  if (directory.samples > kMaxBands) {
    return core::format("TIFF of {} channels; {} are the most", directory.samples, kMaxBands);
  }
  if (directory.bits != 8 && directory.bits != 16) {
    return core::format("TIFF with {} bits is not read, only 8 or 16", directory.bits);
  }
  if (directory.format != 1) return "TIFF of numbers that are not integers is not read";
  if (directory.orientation != 1) return core::format("TIFF with orientation {} is not read", directory.orientation);
  if (directory.planes != 1 && directory.planes != 2) {
    return core::format("TIFF with planes of kind {} is not read", directory.planes);
  }
  if (directory.width < 1 || directory.height < 1 || directory.width > kLongestSide ||
      directory.height > kLongestSide) {
    return core::format("its header gives {}x{} pixels", directory.width, directory.height);
  }
  if (directory.tile_width > kLargestTile || directory.tile_height > kLargestTile) {
    return core::format("TIFF with tiles of {}x{} pixels is not read", directory.tile_width, directory.tile_height);
  }
  const uint64_t pixel = directory.samples * directory.bits / 8;
  const uint64_t bytes = directory.width * directory.height * pixel;
  const uint64_t tile = directory.tile_width * directory.tile_height * pixel;
  if (bytes > kMaxBandBytes || tile > kMaxBandBytes) {
    return core::format("its header gives {}x{} pixels of {} channels, too much for a sample", directory.width,
                        directory.height, directory.samples);
  }
  if (bytes / kMaxBytesPerByte > file_size || tile / kMaxBytesPerByte > file_size) {
    return core::format("TIFF cut short: its header gives {} in a file of {}",
                        core::bytes_text(static_cast<double>(bytes)), core::bytes_text(static_cast<double>(file_size)));
  }
  return "";
}

/// The shape of a file with bands.
bool read_bands(const TiffFile& file, uint64_t size, SampleShape& shape, std::string& problem) {
  const TiffDirectory& directory = file.directory();
  if (!file.problem().empty() || !holds_bands(directory)) return false;
  problem = problem_of(directory, size);
  if (!problem.empty()) return false;
  shape = SampleShape();
  shape.height = static_cast<int64_t>(directory.height);
  shape.width = static_cast<int64_t>(directory.width);
  shape.channels = static_cast<int64_t>(directory.samples);
  shape.element = directory.bits == 8 ? Element::uint8 : Element::float32;
  return true;
}

/// The part of a strip or tile that lies in the image, among [height, width, samples] numbers of `number` bytes.
void place(const TiffDirectory& image, const TiffPiece& piece, uint64_t number, uint8_t* out) {
  const uint64_t here = image.planes == 1 ? image.samples : 1;
  for (uint64_t y = 0; y < piece.rows; ++y) {
    const uint8_t* from = piece.data + y * piece.row_bytes;
    uint8_t* to = out + (((piece.top + y) * image.width + piece.left) * image.samples + piece.plane) * number;
    if (here == image.samples) {
      std::memcpy(to, from, piece.columns * here * number);
      continue;
    }
    for (uint64_t x = 0; x < piece.columns; ++x) {
      std::memcpy(to + x * image.samples * number, from + x * number, number);
    }
  }
}

/// Whole numbers of 16 bits become floats of the same value.
void widen(const uint8_t* words, int64_t count, uint8_t* floats) {
  for (int64_t i = 0; i < count; ++i) {
    uint16_t word = 0;
    std::memcpy(&word, words + 2 * i, sizeof word);
    const auto value = static_cast<float>(word);
    std::memcpy(floats + 4 * i, &value, sizeof value);
  }
}

}  // namespace

std::string band_shape_text(const SampleShape& shape) {
  return core::format("{} x {} x {} of {}", shape.height, shape.width, shape.channels, element_name(shape.element));
}

bool read_band_header(const uint8_t* bytes, uint64_t size, SampleShape& shape, std::string& problem) {
  problem.clear();
  return image_format({bytes, size}) == ImageFormat::tiff && read_bands(TiffFile(bytes, size), size, shape, problem);
}

std::string decode_bands(const uint8_t* bytes, uint64_t size, const SampleShape& shape, BandScratch& scratch,
                         uint8_t* out) {
  SampleShape found;
  std::string problem;
  const auto is_no_tiff = [&] {
    return core::format("is no TIFF of many bands, but {} is expected", band_shape_text(shape));
  };
  if (image_format({bytes, size}) != ImageFormat::tiff) return is_no_tiff();
  TiffFile file(bytes, size);
  if (!read_bands(file, size, found, problem)) {
    if (!problem.empty() || !file.problem().empty()) return problem + file.problem();
    return is_no_tiff();
  }
  if (found != shape) return core::format("is {}, but {} is expected", band_shape_text(found), band_shape_text(shape));
  const TiffDirectory& directory = file.directory();
  const bool are_bytes = directory.bits == 8;
  const int64_t numbers = shape.height * shape.width * shape.channels;
  if (!are_bytes) scratch.stored.resize(static_cast<size_t>(2 * numbers));
  uint8_t* const stored = are_bytes ? out : scratch.stored.data();
  problem = file.read(scratch.piece, kMaxBandBytes,
                      [&](const TiffPiece& piece) { place(directory, piece, are_bytes ? 1 : 2, stored); });
  if (problem.empty() && !are_bytes) widen(stored, numbers, out);
  return problem;
}

}  // namespace stoker::data
