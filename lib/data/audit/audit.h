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
