// SPDX-License-Identifier: Apache-2.0
#include "data/source.h"

#include <utility>

namespace stoker::data {

int64_t stored_bytes(const Source& source, int64_t index) {
  const StoredSamples* const stored = source.stored();
  return stored == nullptr ? -1 : stored->stored_bytes(index);
}

std::string read_head(const Source& source, int64_t index, int64_t bytes, std::vector<uint8_t>& buffer,
                      SampleContent& content) {
  const StoredSamples* const stored = source.stored();
  return stored == nullptr ? source.read(index, buffer, content) : stored->read_head(index, bytes, buffer, content);
}

std::vector<int64_t> run_ends(const Source& source) {
  const StoredSamples* const stored = source.stored();
  return stored == nullptr ? std::vector<int64_t>{source.size()} : stored->run_ends();
}

bool holds_videos(const Source& source) { return source.frames() != nullptr; }

bool decodes_videos(const Source& source) {
  return holds_videos(source) && source.size() > 0 && source.frames()->frame_bytes(0, 0) < 0;
}

SampleNoun sample_noun(const Source& source) {
  const SampleShape shape = source.fixed_shape();
  if (shape.images() > 1) return {"a clip", "clips"};
  return shape.height > 0 ? SampleNoun{"a sample", "samples"} : SampleNoun{"an image", "images"};
}

bool holds_pixels(const Source& source) {
  std::vector<uint8_t> buffer;
  SampleContent content;
  return source.size() > 0 && !holds_videos(source) && read_head(source, 0, 1, buffer, content).empty() &&
         content.is_pixels();
}

ForwardingSource::ForwardingSource(std::shared_ptr<const Source> behind) : behind_(std::move(behind)) {
  class_names_ = behind_->class_names();
  target_names_ = behind_->target_names();
  fingerprint_ = behind_->fingerprint();
}

int64_t ForwardingSource::size() const { return behind_->size(); }
int64_t ForwardingSource::label(int64_t index) const { return behind_->label(index_behind(index)); }
void ForwardingSource::targets(int64_t index, float* out) const { behind_->targets(index_behind(index), out); }
std::string ForwardingSource::name(int64_t index) const { return behind_->name(index_behind(index)); }
std::string ForwardingSource::relative_name(int64_t index) const { return behind_->relative_name(index_behind(index)); }
RegionOfInterest ForwardingSource::region(int64_t index) const { return behind_->region(index_behind(index)); }
SampleShape ForwardingSource::fixed_shape() const { return behind_->fixed_shape(); }

std::string ForwardingSource::read(int64_t index, std::vector<uint8_t>& buffer, SampleContent& content) const {
  return behind_->read(index_behind(index), buffer, content);
}

SourceMemory ForwardingSource::memory() const { return behind_->memory(); }
const FrameSource* ForwardingSource::frames() const { return behind_->frames() == nullptr ? nullptr : this; }
const StoredSamples* ForwardingSource::stored() const { return behind_->stored() == nullptr ? nullptr : this; }

const ExcerptSource* ForwardingSource::excerpts() const { return behind_->excerpts() == nullptr ? nullptr : this; }

int64_t ForwardingSource::frame_count(int64_t index) const {
  return behind_->frames()->frame_count(index_behind(index));
}

std::string ForwardingSource::frame_name(int64_t index, int64_t frame) const {
  return behind_->frames()->frame_name(index_behind(index), frame);
}

std::string ForwardingSource::read_frame(int64_t index, int64_t frame, std::vector<uint8_t>& buffer,
                                         SampleContent& content) const {
  return behind_->frames()->read_frame(index_behind(index), frame, buffer, content);
}

int64_t ForwardingSource::frame_bytes(int64_t index, int64_t frame) const {
  return behind_->frames()->frame_bytes(index_behind(index), frame);
}

int64_t ForwardingSource::stored_bytes(int64_t index) const {
  return behind_->stored()->stored_bytes(index_behind(index));
}

std::string ForwardingSource::read_head(int64_t index, int64_t bytes, std::vector<uint8_t>& buffer,
                                        SampleContent& content) const {
  return behind_->stored()->read_head(index_behind(index), bytes, buffer, content);
}

std::vector<int64_t> ForwardingSource::run_ends() const { return behind_->stored()->run_ends(); }

std::string ForwardingSource::read_excerpt(int64_t index, double position, std::vector<uint8_t>& buffer,
                                           SampleContent& content) const {
  return behind_->excerpts()->read_excerpt(index_behind(index), position, buffer, content);
}

std::string ForwardingSource::read_whole(int64_t index, std::vector<uint8_t>& buffer, SampleContent& content) const {
  return behind_->excerpts()->read_whole(index_behind(index), buffer, content);
}

}  // namespace stoker::data
