// SPDX-License-Identifier: Apache-2.0
// What lies in a folder that holds no data set that is known, and the next step, for messages.
#pragma once

#include <string>

namespace stoker::data {

/// A sentence per kind of thing that was found, each with a line end; empty: nothing that has a name.
std::string found_text(const std::string& folder);
/// The same of one file, without a line end: "is a zip archive: unpack it (unzip photos.zip)".
std::string file_found_text(const std::string& path);

}  // namespace stoker::data
