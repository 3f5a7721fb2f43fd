// SPDX-License-Identifier: Apache-2.0
// The order in which people number files: frame_9 before frame_10.
#pragma once

#include <string_view>

namespace stoker::data {

/// Whether `a` comes before `b`: runs of digits by their number, other bytes as they are. Names that differ
/// only in leading zeros go bytewise, so that it is a strict order of all names.
bool comes_before(std::string_view a, std::string_view b);

}  // namespace stoker::data
