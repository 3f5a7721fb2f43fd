// SPDX-License-Identifier: Apache-2.0
// Results on their way out: unlike news for the console, they must arrive whole or be missed loudly.
#pragma once

#include <string>

namespace stoker::train {

/// A job started with closed descriptors would otherwise get its checkpoint as stdout: they are /dev/null from now on.
void reopen_standard_descriptors();

/// Writes a page such as --help to standard output. A reader that has seen enough (`| head`) is no error. Throws io.
void write_page(const std::string& text);

/// Writes to standard output when `path` is empty or "-", through a device or pipe of that name when there is
/// one, else replaces the file in one step. Throws io, cannot_create or permission.
void write_result(const std::string& path, const std::string& content);

/// From now on everything that is said goes to standard error, so that results on standard output can be piped.
void log_to_stderr();

}  // namespace stoker::train
