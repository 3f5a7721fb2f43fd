// SPDX-License-Identifier: Apache-2.0
// Network addresses where a path is expected: recognised, and answered with the command that copies them here.
#pragma once

#include <string>
#include <string_view>

namespace stoker::core {

/// Whether a text is an address, not a path: letters, then "://", as in "https://x.org/a.zip" or "s3://bucket/key".
bool is_address(std::string_view text);

/// The command that copies an address to this machine, quoted for a shell: "wget https://x.org/a.zip && unzip a.zip".
/// Empty for kinds that no usual command copies.
std::string command_to_copy(const std::string& address);

/// command_to_copy() as the first half of a hint: "nothing is downloaded: run wget ..., then ".
std::string copy_first(const std::string& address);

}  // namespace stoker::core
