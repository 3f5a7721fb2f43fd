// SPDX-License-Identifier: Apache-2.0
// A whole number that stands behind a flag.
#pragma once

#include <cstdint>
#include <string>

namespace stoker::config {

/// The whole number in `text`, from `least` to `most`. Throws core::Error{usage}: its message names the flag, the text
/// and the range; its hint is `hint`.
int64_t flag_integer(const std::string& flag, const std::string& text, int64_t least, int64_t most,
                     const std::string& hint);

}  // namespace stoker::config
