// SPDX-License-Identifier: Apache-2.0
#include "data/dataset/hdf5_source.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"
#include "data/leaf_source.h"

namespace stoker::data {
namespace {

/// [channels, area] becomes [area, channels].
template <typename Number>
void interleave(const uint8_t* planes, int64_t channels, int64_t area, uint8_t* out) {
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t i = 0; i < area; ++i) {
      std::memcpy(out + (i * channels + c) * static_cast<int64_t>(sizeof(Number)),
                  planes + (c * area + i) * static_cast<int64_t>(sizeof(Number)), sizeof(Number));
    }
  }
}

class Hdf5Source : public LeafSource, private StoredSamples {
 public:
  Hdf5Source(Hdf5Samples samples, std::vector<std::string> class_names, std::vector<std::string> target_names)
      : samples_(std::move(samples)) {
    class_names_ = std::move(class_names);
    target_names_ = std::move(target_names);
    for (const Hdf5SampleFile& file : samples_.files) ends_.push_back(size() + file.array->samples());
    fingerprint_ = digest();
  }

  int64_t size() const override { return ends_.empty() ? 0 : ends_.back(); }
  int64_t label(int64_t index) const override {
    return samples_.labels.empty() ? -1 : samples_.labels[static_cast<size_t>(index)];
  }
  void targets(int64_t index, float* out) const override {
    std::copy_n(samples_.targets.data() + index * num_targets(), num_targets(), out);
  }
  std::string name(int64_t index) const override {
    const Found found = find(index);
    return core::format("{}#{}", found.file.path, found.index);
  }
  std::string relative_name(int64_t index) const override { return core::format("#{}", index); }
  SampleShape fixed_shape() const override { return samples_.shape; }
  SourceMemory memory() const override {
    size_t list_bytes = samples_.labels.size() * sizeof(int32_t) + samples_.targets.size() * sizeof(float);
    for (const Hdf5SampleFile& file : samples_.files) {
      list_bytes += file.array->array().places.size() * sizeof(ChunkPlace);
    }
    return {static_cast<int64_t>(list_bytes), 0};
  }
  const StoredSamples* stored() const override { return this; }

  std::vector<int64_t> run_ends() const override {
    std::vector<int64_t> all;
    for (size_t i = 0; i < ends_.size(); ++i) {
      const int64_t begin = i == 0 ? 0 : ends_[i - 1];
      for (const int64_t end : samples_.files[i].array->run_ends()) all.push_back(begin + end);
    }
    return all;
  }
  int64_t stored_bytes(int64_t) const override { return -1; }  // chunks hold several samples, or parts of them
  std::string read_head(int64_t index, int64_t, std::vector<uint8_t>& buffer, SampleContent& content) const override {
    return read(index, buffer, content);
  }

  std::string read(int64_t index, std::vector<uint8_t>& buffer, SampleContent& content) const override {
    thread_local ArrayScratch scratch;
    const SampleShape& shape = samples_.shape;
    const auto bytes = static_cast<size_t>(shape.image_bytes());
    const Found found = find(index);
    const bool has_planes = found.file.channels_first && shape.channels > 1;
    const size_t needed = has_planes ? 2 * bytes : bytes;
    if (buffer.size() < needed) buffer.resize(needed);
    uint8_t* const stored = buffer.data() + (has_planes ? bytes : 0);
    if (std::string cause = found.file.array->read(found.index, scratch, stored); !cause.empty()) return cause;
    if (has_planes) interleave_planes(stored, buffer.data());
    content.bytes = buffer.data();
    content.size = bytes;
    content.height = static_cast<int>(shape.height);
    content.width = static_cast<int>(shape.width);
    content.channels = static_cast<int>(shape.channels);
    content.element = shape.element;
    return "";
  }

 private:
  struct Found {
    const Hdf5SampleFile& file;
    int64_t index;  ///< in the file
  };
  Found find(int64_t index) const {
    const auto at = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin());
    return {samples_.files[at], at == 0 ? index : index - ends_[at - 1]};
  }
  void interleave_planes(const uint8_t* planes, uint8_t* out) const {
    const int64_t channels = samples_.shape.channels, area = samples_.shape.height * samples_.shape.width;
    switch (samples_.shape.element) {
      case Element::uint8: return interleave<uint8_t>(planes, channels, area, out);
      case Element::float16: return interleave<uint16_t>(planes, channels, area, out);
      case Element::float32: return interleave<uint32_t>(planes, channels, area, out);
    }
  }

  std::string digest() const {
    constexpr int64_t kLookedAt = 64;
    const SampleShape& shape = samples_.shape;
    core::Hasher hasher;
    hasher.add(core::format("hdf5 {} x {} x {} {} {} samples, {} classes\n", shape.height, shape.width, shape.channels,
                            element_name(shape.element), size(), class_names_.size()));
    for (const std::string& learned : learned_names()) hasher.add(core::format("{}:{}", learned.size(), learned));
    hasher.add(samples_.labels.data(), samples_.labels.size() * sizeof(int32_t));
    hasher.add(samples_.targets.data(), samples_.targets.size() * sizeof(float));
    std::vector<uint8_t> buffer;
    for (int64_t i = 0; i < std::min(kLookedAt, size()); ++i) {
      const int64_t index = i * size() / std::min(kLookedAt, size());
      SampleContent content;
      const std::string cause = read(index, buffer, content);
      if (!cause.empty()) {
        throw core::Error(core::ErrorKind::data, core::format("{}: {}", core::printable(name(index)), cause),
                          "get the file again, or write it again");
      }
      hasher.add(content.bytes, content.size);
    }
    return hasher.hex();
  }

  const Hdf5Samples samples_;
  std::vector<int64_t> ends_;  ///< of the samples of each file
};

}  // namespace

std::shared_ptr<const Source> make_hdf5_source(Hdf5Samples samples, std::vector<std::string> class_names,
                                               std::vector<std::string> target_names) {
  return std::make_shared<Hdf5Source>(std::move(samples), std::move(class_names), std::move(target_names));
}

}  // namespace stoker::data
