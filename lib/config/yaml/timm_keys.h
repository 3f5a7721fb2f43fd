// SPDX-License-Identifier: Apache-2.0
// Keys of timm's args.yaml for which there is no option.
#pragma once

#include <string>

namespace stoker::config {

/// A key for what does not exist here: it may stand in a file with the value that turns it off.
struct OnlyAs {
  const char* name;
  const char* off = "";     ///< besides an empty value, false and 0
  const char* advice = "";  ///< what to do instead; empty: nothing does it
};
/// The key of that name, or nullptr.
const OnlyAs* only_off(const std::string& name);
/// Whether the key changes nothing here, whatever its value.
bool is_without_work(const std::string& name);

}  // namespace stoker::config
