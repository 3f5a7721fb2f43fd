// SPDX-License-Identifier: Apache-2.0
// Zip archives for tests, with what may be wrong about them.
#pragma once

#include <string>
#include <vector>

namespace stoker::fixtures {

struct MadeMember {
  std::string name, content;
  bool deflated = false;
  bool zip64 = false;    ///< sizes and place stand in the long fields
  bool checksum = true;  ///< else 0 is written, as newer releases of PyTorch can
  int padding = 0;       ///< bytes of extra field in the local header: PyTorch aligns storages
};

std::string made_zip(const std::vector<MadeMember>& members, bool zip64_end = false);

}  // namespace stoker::fixtures
