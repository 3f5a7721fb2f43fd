// SPDX-License-Identifier: Apache-2.0
// Reads a pickle and runs nothing of it: containers, numbers, texts and the tensors of torch.save() become plain
// values, every other class or function stays opaque: its name, and what it would have been called with. Memory is
// bounded by the size of the pickle and by a limit on values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::data {

// The content of a pickle, as plain values. Values refer to each other by index, so that a pickle may
// refer to itself and still be freed in one go.

/// The type of the numbers in a storage.
enum class NumberType : uint8_t { f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean };

using ValueIndex = uint32_t;  ///< into PickleTree::values

enum class ValueKind : uint8_t {
  none,
  boolean,
  integer,
  real,
  text,
  bytes,
  tuple,
  list,
  dictionary,
  global,
  storage,
  tensor,
  inert,
  opaque  ///< a class or function that is not known here, what is made by calling it, or a type of numbers: never built
};

/// The role of a global that a state dict may call.
enum class GlobalRole : uint8_t {
  ordered_dictionary,
  tensor_v1,
  tensor_v2,
  parameter,
  parameter_with_state,
  size,
  device,
  storage_type,
  number_type
};

struct PickleValue {
  ValueKind kind = ValueKind::none;
  GlobalRole role = GlobalRole::size;        ///< role of a global
  NumberType number_type = NumberType::f32;  ///< number type of a storage type or a storage
  int64_t integer = 0;    ///< also booleans, the numbers in a storage, PickleTree::tensors' and opaque_names' index
  std::string_view text;  ///< text, bytes, the key of a storage: borrows the pickle
  std::vector<ValueIndex> items;  ///< elements of tuples and lists; for dictionaries: key, value, key, value, ...;
                                  ///< for what is opaque: the arguments it was called with, then its state
};

struct PickledTensor {
  ValueIndex storage = 0;
  int64_t offset = 0;  ///< numbers, not negative
  std::vector<int64_t> shape, strides;
};

struct PickleTree {
  std::vector<PickleValue> values;
  std::vector<PickledTensor> tensors;
  std::vector<std::string> opaque_names;  ///< "argparse.Namespace": each once, in the order of the pickle
  ValueIndex root = 0;

  const PickleValue& at(ValueIndex index) const { return values.at(index); }
  const PickledTensor& tensor(const PickleValue& value) const { return tensors.at(static_cast<size_t>(value.integer)); }
};

/// The pickle at the front of `bytes`, which the values borrow. `what` names the file in messages. `consumed`: bytes up
/// to its end. Throws Error{data} that names the opcode and the byte.
PickleTree read_pickle(std::string_view bytes, const std::string& what, uint64_t& consumed);

}  // namespace stoker::data
