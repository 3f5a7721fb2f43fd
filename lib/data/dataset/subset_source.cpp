// SPDX-License-Identifier: Apache-2.0
#include "data/dataset/subset_source.h"

#include <algorithm>

#include "core/format.h"
#include "core/hash.h"

namespace stoker::data {
namespace {

class SubsetSource : public Source {
 public:
  SubsetSource(std::shared_ptr<const Source> whole, std::vector<uint32_t> indices)
      : whole_(std::move(whole)), indices_(std::move(indices)) {
    class_names_ = whole_->class_names();
    target_names_ = whole_->target_names();
    core::Hasher hasher;
    hasher.add("subset of " + whole_->fingerprint());
    hasher.add(indices_.data(), indices_.size() * sizeof(uint32_t));
    fingerprint_ = hasher.hex();
  }

  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  int64_t label(int64_t index) const override { return whole_->label(of(index)); }
  void targets(int64_t index, float* out) const override { whole_->targets(of(index), out); }
  FaceBox face(int64_t index) const override { return whole_->face(of(index)); }
  std::string name(int64_t index) const override { return whole_->name(of(index)); }
  std::string relative_name(int64_t index) const override { return whole_->relative_name(of(index)); }
  int64_t list_bytes() const override {  // the whole is held only once, by both parts
    return static_cast<int64_t>(indices_.size() * sizeof(uint32_t)) +
           (size() == 0 ? 0 : whole_->list_bytes() * size() / whole_->size());
  }
  std::vector<int64_t> run_ends() const override {
    std::vector<int64_t> ends = whole_->run_ends();
    for (int64_t& end : ends) end = std::lower_bound(indices_.begin(), indices_.end(), end) - indices_.begin();
    return ends;
  }
  std::string read(int64_t index, std::vector<uint8_t>& buffer, SampleContent& content) const override {
    return whole_->read(of(index), buffer, content);
  }
  std::string read_head(int64_t index, int64_t bytes, std::vector<uint8_t>& buffer,
                        SampleContent& content) const override {
    return whole_->read_head(of(index), bytes, buffer, content);
  }
  SampleShape fixed_shape() const override { return whole_->fixed_shape(); }
  int64_t frame_count(int64_t index) const override { return whole_->frame_count(of(index)); }
  std::string frame_name(int64_t index, int64_t frame) const override { return whole_->frame_name(of(index), frame); }
  std::string read_frame(int64_t index, int64_t frame, std::vector<uint8_t>& buffer,
                         SampleContent& content) const override {
    return whole_->read_frame(of(index), frame, buffer, content);
  }
  int64_t frame_bytes(int64_t index, int64_t frame) const override { return whole_->frame_bytes(of(index), frame); }
  int64_t stored_bytes(int64_t index) const override { return whole_->stored_bytes(of(index)); }

 private:
  int64_t of(int64_t index) const { return indices_[static_cast<size_t>(index)]; }

  std::shared_ptr<const Source> whole_;
  std::vector<uint32_t> indices_;
};

}  // namespace

std::pair<std::shared_ptr<const Source>, std::shared_ptr<const Source>> hold_out(
    const std::shared_ptr<const Source>& whole, double fraction) {
  std::vector<uint32_t> kept, held;
  for (int64_t i = 0; i < whole->size(); ++i) {
    const double position = static_cast<double>(core::hash64(whole->relative_name(i)) >> 11) * 0x1.0p-53;
    (position < fraction ? held : kept).push_back(static_cast<uint32_t>(i));
  }
  return {std::make_shared<SubsetSource>(whole, std::move(kept)),
          std::make_shared<SubsetSource>(whole, std::move(held))};
}

std::shared_ptr<const Source> evenly_spaced(const std::shared_ptr<const Source>& whole, int64_t most) {
  if (whole->size() <= most) return whole;
  std::vector<uint32_t> kept;
  for (int64_t i = 0; i < most; ++i) kept.push_back(static_cast<uint32_t>(i * whole->size() / most));
  return std::make_shared<SubsetSource>(whole, std::move(kept));
}

}  // namespace stoker::data
