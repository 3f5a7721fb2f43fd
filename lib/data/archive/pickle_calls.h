// SPDX-License-Identifier: Apache-2.0
// The results of calls in a pickle of a state dict: dictionaries, storages and tensors as plain values.
#pragma once

#include <string>
#include <string_view>

#include "data/archive/pickle_reader.h"

namespace stoker::data {

/// Where a pickle is being read, for the error that ends it.
struct PicklePlace {
  const std::string& what;  ///< names the file
  uint64_t at = 0;          ///< byte of the pickle

  /// Throws Error{data}.
  [[noreturn]] void refuse(const std::string& reason) const;
};

/// The value of global(*arguments). A tensor is added to those of the tree.
PickleValue call_global(PickleTree& tree, ValueIndex function, ValueIndex arguments, const PicklePlace& place);
/// The storage that a persistent id stands for: ("storage", type, key, location, numbers) and, in the older format, a
/// view that must be None.
PickleValue make_storage(const PickleTree& tree, ValueIndex id, const PicklePlace& place);

// The names of Python that a state dict may mention, and what each stands for here. All others stay opaque.

struct KnownGlobal {
  std::string_view module, name;
  GlobalRole role = GlobalRole::size;
  NumberType type = NumberType::f32;  ///< number type of storage_type and number_type
};

/// nullptr: a state dict does not need it.
const KnownGlobal* find_global(std::string_view module, std::string_view name);

/// "BINPUT"; nullptr for a byte that is not an opcode of any protocol.
const char* opcode_name(uint8_t opcode);

}  // namespace stoker::data
