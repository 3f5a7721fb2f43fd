// SPDX-License-Identifier: Apache-2.0
// What the calls in a pickle of a state dict make: dictionaries, storages and tensors as plain values.
#pragma once

#include <string>

#include "data/archive/pickle_value.h"

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

}  // namespace stoker::data
