// SPDX-License-Identifier: Apache-2.0
// What an audit found in a data set, as plain values.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace stoker::data {

/// A sample: index of its split in AuditFindings::splits, and its own in the split.
struct SampleAt {
  int64_t split = 0, index = 0;
  bool operator==(const SampleAt& other) const { return split == other.split && index == other.index; }
  bool operator<(const SampleAt& other) const {
    return split != other.split ? split < other.split : index < other.index;
  }
};

struct SplitFindings {
  std::string name;
  int64_t samples = 0;
  std::vector<int64_t> class_samples;  ///< [classes]; empty where numbers are learned
};

struct CorruptSample {
  SampleAt at;
  std::string reason;
};

/// Samples that show the same picture.
struct DuplicateGroup {
  std::vector<SampleAt> members;  ///< at least two, ascending
  bool exact = true;  ///< all have the same pixels; else some are resized, recompressed, mirrored or cropped
  bool across_splits = false;
  bool labels_differ = false;
};

/// How many samples have one property.
struct Tally {
  std::string what;
  int64_t samples = 0;
};

struct AuditFindings {
  std::vector<std::string> learned_names;  ///< classes or targets
  bool learns_numbers = false;
  std::vector<SplitFindings> splits;
  std::vector<Tally> sizes, kinds;     ///< most frequent first
  std::vector<CorruptSample> bad;      ///< cannot be read or decoded, or hold no numbers
  std::vector<SampleAt> one_value;     ///< one colour everywhere
  bool near_compared = false;          ///< near duplicates were looked for
  std::vector<DuplicateGroup> groups;  ///< those across splits first, then those whose labels differ

  int64_t samples() const {
    int64_t sum = 0;
    for (const SplitFindings& split : splits) sum += split.samples;
    return sum;
  }
};

}  // namespace stoker::data
