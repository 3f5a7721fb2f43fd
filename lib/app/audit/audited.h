// SPDX-License-Identifier: Apache-2.0
// A data set that was audited: the findings, and the splits that they are about, for names and pictures.
#pragma once

#include <string>
#include <vector>

#include "core/format.h"
#include "data/audit/audit.h"
#include "data/audit/findings.h"

namespace stoker::app {

struct Audited {
  std::string data_dir;
  std::vector<data::SplitToAudit> splits;  ///< in the order of findings.splits
  data::AuditFindings findings;
  double seconds = 0;  ///< that the audit took

  const data::Source& source_of(const data::SampleAt& at) const {
    return *splits[static_cast<size_t>(at.split)].source;
  }
  const std::string& split_of(const data::SampleAt& at) const { return splits[static_cast<size_t>(at.split)].name; }
  /// "train: cat/0007.jpg"
  std::string name_of(const data::SampleAt& at) const {
    return core::format("{}: {}", split_of(at), core::printable(source_of(at).relative_name(at.index)));
  }
  /// Its class, or the numbers that are to be learned of it.
  std::string label_of(const data::SampleAt& at) const;
};

}  // namespace stoker::app
