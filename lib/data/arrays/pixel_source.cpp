// SPDX-License-Identifier: Apache-2.0
#include "data/arrays/pixel_source.h"

#include <algorithm>

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
