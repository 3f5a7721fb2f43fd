// SPDX-License-Identifier: Apache-2.0
// The base of sources that stand in front of another one: a part of it, a cache, frames from elsewhere.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/source.h"

namespace stoker::data {

/// Forwards every method, those of the facets as well, to the source behind it; it has the facets that this one has.
/// A class that derives from it overrides what it changes and nothing else. What it changes of the samples must show in
/// fingerprint_, which is that of the source behind until the constructor of the derived class sets another.
class ForwardingSource : public Source, protected FrameSource, protected StoredSamples {
 public:
  int64_t size() const override;
  int64_t label(int64_t index) const override;
  void targets(int64_t index, float* out) const override;
  std::string name(int64_t index) const override;
  std::string relative_name(int64_t index) const override;
  RegionOfInterest region(int64_t index) const override;
  SampleShape fixed_shape() const override;
  std::string read(int64_t index, std::vector<uint8_t>& buffer, SampleContent& content) const override;
  SourceMemory memory() const override;
  const FrameSource* frames() const override;
  const StoredSamples* stored() const override;

 protected:
  explicit ForwardingSource(std::shared_ptr<const Source> behind);

  const Source& behind() const { return *behind_; }
  /// The index that sample `index` has in the source behind. A class that changes it changes size() and run_ends() too.
  virtual int64_t index_behind(int64_t index) const { return index; }

  // Of the facets; called only where the source behind has them.
  int64_t frame_count(int64_t index) const override;
  std::string frame_name(int64_t index, int64_t frame) const override;
  std::string read_frame(int64_t index, int64_t frame, std::vector<uint8_t>& buffer,
                         SampleContent& content) const override;
  int64_t frame_bytes(int64_t index, int64_t frame) const override;
  int64_t stored_bytes(int64_t index) const override;
  std::string read_head(int64_t index, int64_t bytes, std::vector<uint8_t>& buffer,
                        SampleContent& content) const override;
  std::vector<int64_t> run_ends() const override;

 private:
  const std::shared_ptr<const Source> behind_;
};

}  // namespace stoker::data
