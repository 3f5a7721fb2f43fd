// SPDX-License-Identifier: Apache-2.0
// "Did you mean" for words of any length and origin.
#pragma once

#include <string>
#include <vector>

namespace stoker::config {

/// The name that was probably meant by `word`, or "" when none is near. Words of up to three letters only
/// match names that begin alike, since nearly everything is near them; words beyond 64 bytes match nothing.
std::string near_name(const std::string& word, const std::vector<std::string>& names);
/// "; did you mean NAME?" or "", with `prefix` ("--") before the name.
std::string suggestion(const std::string& word, const std::vector<std::string>& names, const std::string& prefix = "");

}  // namespace stoker::config
