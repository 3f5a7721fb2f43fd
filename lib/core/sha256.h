// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4) of bytes in memory: names a file that is trusted, so that another one cannot stand in for it.
#pragma once

#include <string>
#include <string_view>

namespace stoker::core {

/// 64 lower-case hexadecimal digits, as sha256sum prints them.
std::string sha256_hex(std::string_view bytes);

}  // namespace stoker::core
