// SPDX-License-Identifier: Apache-2.0
// Reads a pickle and runs nothing of it: containers, numbers, texts and the tensors of torch.save() become plain
// values, every other class or function stays opaque: its name, and what it would have been called with. Memory is
// bounded by the size of the pickle and by a limit on values.
#pragma once

#include <string>
#include <string_view>

#include "data/archive/pickle_value.h"

namespace stoker::data {

/// The pickle at the front of `bytes`, which the values borrow. `what` names the file in messages. `consumed`: bytes up
/// to its end. Throws Error{data} that names the opcode and the byte.
PickleTree read_pickle(std::string_view bytes, const std::string& what, uint64_t& consumed);

}  // namespace stoker::data
