// SPDX-License-Identifier: Apache-2.0
// Finds the defects of every sample of some splits. Reads and decodes each sample once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/image/decode.h"
#include "data/source.h"

namespace stoker::data {

// The findings of an audit, as plain values.

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

  /// At most `count` members: the first of each split, then the others in order.
  std::vector<SampleAt> examples(size_t count) const;
};

/// How many samples have one property.
struct Tally {
  std::string what;
  int64_t samples = 0;
};

struct AuditFindings {
  std::vector<std::string> learned_names;  ///< classes or targets
  bool is_numeric_task = false;
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

// Groups of samples that grow together pair by pair (union-find).

class SampleGroups {
 public:
  /// Every sample is alone.
  explicit SampleGroups(int64_t samples);

  void join(int64_t a, int64_t b);
  bool are_joined(int64_t a, int64_t b) { return root_of(a) == root_of(b); }
  /// Groups of two or more, each ascending, in the order of their first members.
  std::vector<std::vector<int64_t>> of_several();

 private:
  int64_t root_of(int64_t sample);

  std::vector<int64_t> parent_;  ///< a root is its own; always the smallest member
};

struct SplitToAudit {
  std::string name;
  std::shared_ptr<const Source> source;
};

struct AuditSettings {
  DecodeLimits limits;
  int64_t threads = 1;
  bool near = true;  ///< look for near duplicates, too
};

/// Called from one thread or another, never from two at once, with the samples that have been looked at.
using AuditProgress = std::function<void(int64_t done, int64_t total)>;

/// `splits`: at least one, with the same classes or targets. Throws core::StopRequested, and as Source::read().
AuditFindings audit(const std::vector<SplitToAudit>& splits, const AuditSettings& settings,
                    const AuditProgress& on_progress = {});

}  // namespace stoker::data
