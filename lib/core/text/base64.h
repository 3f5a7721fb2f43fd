// SPDX-License-Identifier: Apache-2.0
// Bytes as text of 64 letters (RFC 4648).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stoker::core {

std::string base64(const std::vector<uint8_t>& bytes);

}  // namespace stoker::core
