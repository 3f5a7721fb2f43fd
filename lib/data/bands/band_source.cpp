// SPDX-License-Identifier: Apache-2.0
#include "data/bands/band_source.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/format.h"
#include "core/system/stop_signal.h"
#include "data/bands/band_file.h"
#include "data/forwarding_source.h"

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
    content.bytes = buffer.data();
    content.size = bytes;
    content.height = static_cast<int>(shape_.height);
    content.width = static_cast<int>(shape_.width);
    content.channels = static_cast<int>(shape_.channels);
    content.element = shape_.element;
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

/// What some files of a list are.
struct SeenFiles {
  std::vector<SeenShape> shapes;
  int64_t others = 0;   ///< TIFF files that hold pictures, or nothing recognizable
  std::string problem;  ///< of the first file of bands that is not read
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
                      "TIFF files of many bands hold whole numbers of 8 or 16 bits; HDF5 files hold any numbers");
  }
  if (of_bands <= seen.others) return files;
  const auto most = std::max_element(seen.shapes.begin(), seen.shapes.end(),
                                     [](const SeenShape& a, const SeenShape& b) { return a.files < b.files; });
  return std::make_shared<BandSource>(std::move(files), most->shape);
}

}  // namespace stoker::data
