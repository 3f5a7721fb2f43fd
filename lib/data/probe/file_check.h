// SPDX-License-Identifier: Apache-2.0
// Whether the files of a data set can be read and decoded, of some samples or all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/image/decode.h"
#include "data/source.h"

namespace stoker::data {

struct FileCheckSettings {
  DecodeLimits limits;
  int64_t threads = 1;
  int64_t at_most = 0;  ///< samples that are read, spread evenly; 0: all
};

struct FileCheck {
  int64_t samples = 0;                 ///< number of samples of the source
  int64_t looked_at = 0;               ///< number of samples that were read and decoded
  int64_t bad = 0;                     ///< bad ones of those, and files without a byte, which are known without reading
  std::vector<std::string> first_bad;  ///< "path: reason", in the order of samples; at most kShownBad
};

inline constexpr size_t kShownBad = 5;

/// The first frame of a video is checked. Throws core::StopRequested, and core::Error{io} when the storage fails.
FileCheck check_files(const Source& source, const FileCheckSettings& settings);

/// "300 of 60,000 samples read, none bad", "all 400 samples read, 3 bad". `what`: "samples", "training samples".
std::string file_check_text(const FileCheck& check, const std::string& what);

}  // namespace stoker::data
