// SPDX-License-Identifier: Apache-2.0
// The names of Python that a state dict may mention, and what each stands for here. All others stay opaque.
#pragma once

#include <string_view>

#include "data/archive/pickle_value.h"

namespace stoker::data {

struct KnownGlobal {
  std::string_view module, name;
  GlobalRole role = GlobalRole::size;
  NumberType type = NumberType::f32;  ///< of storage_type and number_type
};

/// nullptr: a state dict does not need it.
const KnownGlobal* find_global(std::string_view module, std::string_view name);

/// "BINPUT"; nullptr for a byte that is no opcode of any protocol.
const char* opcode_name(uint8_t opcode);

}  // namespace stoker::data
