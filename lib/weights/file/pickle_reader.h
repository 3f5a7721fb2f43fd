// SPDX-License-Identifier: Apache-2.0
// Reads a pickle that holds a state dict and runs nothing of it: the opcodes and globals that torch.save() writes for
// tensors in dictionaries build plain values, every other one is refused by its name. Memory is bounded by the size of
// the pickle and by a limit on values.
#pragma once

#include <string>
#include <string_view>

#include "weights/file/pickle_value.h"

namespace stoker::weights {

/// The pickle at the front of `bytes`, which the values borrow. `what` names the file in messages. `consumed`: bytes up
/// to its end. Throws Error{data} that names the opcode or global and the byte.
PickleTree read_pickle(std::string_view bytes, const std::string& what, uint64_t& consumed);

}  // namespace stoker::weights
