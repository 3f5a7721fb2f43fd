// SPDX-License-Identifier: Apache-2.0
// An option as a checkpoint remembers it, to be compared when a run resumes.
#pragma once

#include <string>

namespace stoker::config {

/// An option that must not change on resume, because trained bits depend on it.
struct TrainingOption {
  std::string name, value;
  std::string before_it_existed;  ///< the value of runs whose checkpoints lack it; empty: unknown
};

}  // namespace stoker::config
