// SPDX-License-Identifier: Apache-2.0
// Finds the defects of every sample of some splits. Reads and decodes each sample once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/audit/findings.h"
#include "data/image/decode.h"
#include "data/source.h"

namespace stoker::data {

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
