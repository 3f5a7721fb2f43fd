// SPDX-License-Identifier: Apache-2.0
// A data set that was audited: the findings, and the splits that they are about, for names and pictures.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/format.h"
#include "core/text/json.h"
#include "data/audit/audit.h"
#include "data/image/decode.h"
#include "data/source.h"
#include "data/storage/byte_reader.h"

namespace stoker::train {

/// A sample whose label looks wrong to the networks of a run.
struct LabelSuspect {
  data::SampleAt at;
  double loss = 0;         ///< mean over checkpoints
  std::string looks_like;  ///< the class, or the numbers, that the last of them predicts
  double confidence = 0;   ///< in that class, 0 to 1; NaN where numbers are learned
};

/// How the labels of one split compare with the predictions of a run.
struct SplitSuspects {
  int64_t judged = 0;                      ///< samples with a loss
  int64_t estimated_wrong = 0;             ///< labels that look wrong; -1: numbers are learned, nothing is estimated
  int64_t agreed = -1;                     ///< labels that the last network predicts; -1 likewise
  std::vector<LabelSuspect> most_suspect;  ///< the largest loss first
};

struct Audited {
  std::string data_dir;
  std::vector<data::SplitToAudit> splits;  ///< in the order of findings.splits
  data::AuditFindings findings;
  std::string run;                       ///< whose networks scored labels; empty: none
  std::vector<std::string> checkpoints;  ///< checkpoints of that run that scored labels
  std::vector<SplitSuspects> suspects;   ///< [splits]; empty: no run
  double seconds = 0;                    ///< that the audit took

  const data::Source& source_of(const data::SampleAt& at) const {
    return *splits[static_cast<size_t>(at.split)].source;
  }
  const std::string& split_of(const data::SampleAt& at) const { return splits[static_cast<size_t>(at.split)].name; }
  /// "train: cat/0007.jpg"
  std::string name_of(const data::SampleAt& at) const {
    return core::format("{}: {}", split_of(at), core::printable(source_of(at).relative_name(at.index)));
  }
  std::string reason_of(const data::CorruptSample& bad) const {
    return data::reason_for(source_of(bad.at).name(bad.at.index), bad.reason);
  }
  /// Its class, or the numbers that are to be learned of it.
  std::string label_of(const data::SampleAt& at) const;
};

// The findings of an audit as text.

/// Lines of at most some examples of each finding.
std::string audit_text(const Audited& audited);

// The findings of an audit as JSON: every sample by name.

core::Json audit_json(const Audited& audited);

// The findings of an audit as a page with pictures.

/// `made_by`: "stoker train 0.1.0"; `time`: UTC. Reads the samples that it shows once more; of each finding at most
/// some dozens.
std::string audit_page(const Audited& audited, const data::DecodeLimits& limits, const std::string& made_by,
                       const std::string& time);

// A sample as a small JPEG, for a page.

/// Base64 of a JPEG whose longer side has at most 112 pixels, in the picture's own shape; of a video the frame in the
/// middle; of other numbers as data::picture_of() draws them. "" for samples that cannot be read.
std::string sample_picture(const data::Source& source, int64_t index, const data::DecodeLimits& limits);

}  // namespace stoker::train
