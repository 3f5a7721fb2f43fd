// SPDX-License-Identifier: Apache-2.0
// Writing of comma-separated text (RFC 4180).
#pragma once

#include <string>
#include <vector>

namespace stoker::core {

/// In quotes where it needs them: where it holds a comma, a quote or a line end.
std::string csv_field(const std::string& text);
/// The fields with commas between them, each as csv_field() has it; no line end.
std::string csv_row(const std::vector<std::string>& fields);

}  // namespace stoker::core
