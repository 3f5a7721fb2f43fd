// SPDX-License-Identifier: Apache-2.0
#include "data/archive/pickle_calls.h"

#include <utility>

#include "core/error.h"
#include "core/format.h"

namespace stoker::data {
namespace {

constexpr size_t kMaxSides = 16;

/// Reads the arguments of one call.
class Call {
 public:
  Call(const PickleTree& tree, const std::vector<ValueIndex>& arguments, const char* name, const PicklePlace& place)
      : tree_(tree), arguments_(arguments), name_(name), place_(place) {}

  void expect(bool right) const {
    if (!right) place_.refuse(core::format("{} is called with other arguments than a state dict has", name_));
  }
  void expect_count(size_t least, size_t most) const {
    expect(arguments_.size() >= least && arguments_.size() <= most);
  }
  const PickleValue& argument(size_t index, ValueKind kind) const {
    const PickleValue& value = tree_.at(arguments_.at(index));
    expect(value.kind == kind);
    return value;
  }
  ValueIndex index_of(size_t argument) const { return arguments_.at(argument); }
  /// None, or a dictionary without items.
  void expect_nothing(size_t index) const {
    const PickleValue& value = tree_.at(arguments_.at(index));
    expect(value.kind == ValueKind::none || (value.kind == ValueKind::dictionary && value.items.empty()));
  }
  /// Integers of at least 0.
  std::vector<int64_t> integers(size_t index) const {
    const PickleValue& value = tree_.at(arguments_.at(index));
    expect((value.kind == ValueKind::tuple || value.kind == ValueKind::list) && value.items.size() <= kMaxSides);
    std::vector<int64_t> numbers;
    for (const ValueIndex item : value.items) {
      expect(tree_.at(item).kind == ValueKind::integer && tree_.at(item).integer >= 0);
      numbers.push_back(tree_.at(item).integer);
    }
    return numbers;
  }

 private:
  const PickleTree& tree_;
  const std::vector<ValueIndex>& arguments_;
  const char* name_;
  const PicklePlace& place_;
};

/// Python 2 gives the items as a list of pairs.
PickleValue make_dictionary(const PickleTree& tree, const std::vector<ValueIndex>& arguments,
                            const PicklePlace& place) {
  const Call call(tree, arguments, "collections.OrderedDict", place);
  call.expect_count(0, 1);
  PickleValue dictionary;
  dictionary.kind = ValueKind::dictionary;
  if (arguments.empty()) return dictionary;
  for (const ValueIndex index : call.argument(0, ValueKind::list).items) {
    const PickleValue& pair = tree.at(index);
    call.expect((pair.kind == ValueKind::list || pair.kind == ValueKind::tuple) && pair.items.size() == 2);
    dictionary.items.insert(dictionary.items.end(), pair.items.begin(), pair.items.end());
  }
  return dictionary;
}

/// (storage, offset, size, stride), and from version 2 on (requires_grad, hooks[, metadata]).
PickleValue make_tensor(PickleTree& tree, const std::vector<ValueIndex>& arguments, bool is_v1,
                        const PicklePlace& place) {
  const Call call(tree, arguments, is_v1 ? "torch._utils._rebuild_tensor" : "torch._utils._rebuild_tensor_v2", place);
  call.expect_count(is_v1 ? 4 : 6, is_v1 ? 4 : 7);
  PickledTensor tensor;
  call.argument(0, ValueKind::storage);
  tensor.storage = call.index_of(0);
  tensor.offset = call.argument(1, ValueKind::integer).integer;
  call.expect(tensor.offset >= 0);
  tensor.shape = call.integers(2);
  tensor.strides = call.integers(3);
  call.expect(tensor.shape.size() == tensor.strides.size());
  if (!is_v1) {
    call.argument(4, ValueKind::boolean);
    call.expect_nothing(5);
    if (arguments.size() == 7) call.expect_nothing(6);  // conjugated or negated numbers would stand here
  }
  PickleValue value;
  value.kind = ValueKind::tensor;
  value.integer = static_cast<int64_t>(tree.tensors.size());
  tree.tensors.push_back(std::move(tensor));
  return value;
}

/// A tensor with hooks that must be empty: its state is of no interest.
PickleValue make_parameter(const PickleTree& tree, const std::vector<ValueIndex>& arguments, bool has_state,
                           const PicklePlace& place) {
  const Call call(tree, arguments, "torch._utils._rebuild_parameter", place);
  call.expect_count(has_state ? 4 : 3, has_state ? 4 : 3);
  call.argument(1, ValueKind::boolean);
  call.expect_nothing(2);
  return call.argument(0, ValueKind::tensor);
}

/// Whether a tensor is made of numbers of a type that is not known here.
bool is_opaque(const PickleTree& tree, const std::vector<ValueIndex>& arguments) {
  return !arguments.empty() && tree.at(arguments[0]).kind == ValueKind::opaque;
}

}  // namespace

void PicklePlace::refuse(const std::string& reason) const {
  throw core::Error(core::ErrorKind::data, core::format("{}: refused at byte {} of its pickle: {}", what, at, reason),
                    "only state dicts are read, and nothing in a file is executed; in Python: "
                    "torch.save(model.state_dict(), 'weights.pth')");
}

PickleValue call_global(PickleTree& tree, ValueIndex function, ValueIndex arguments, const PicklePlace& place) {
  const PickleValue& global = tree.at(function);
  if (global.kind == ValueKind::opaque) {
    PickleValue made;
    made.kind = ValueKind::opaque;
    made.integer = global.integer;
    made.items = {arguments};
    return made;
  }
  const std::vector<ValueIndex>& given = tree.at(arguments).items;  // what is called adds no values itself
  if (global.kind != ValueKind::global || tree.at(arguments).kind != ValueKind::tuple) {
    place.refuse("it calls a function that no state dict needs");
  }
  PickleValue inert;  // what is read and never used
  inert.kind = ValueKind::inert;
  switch (global.role) {
    case GlobalRole::ordered_dictionary: return make_dictionary(tree, given, place);
    case GlobalRole::tensor_v1:
    case GlobalRole::tensor_v2:
      if (is_opaque(tree, given)) return tree.at(given[0]);
      return make_tensor(tree, given, global.role == GlobalRole::tensor_v1, place);
    case GlobalRole::parameter:
    case GlobalRole::parameter_with_state:
      if (is_opaque(tree, given)) return tree.at(given[0]);
      return make_parameter(tree, given, global.role == GlobalRole::parameter_with_state, place);
    case GlobalRole::size: {
      const Call call(tree, given, "torch.Size", place);
      call.expect_count(1, 1);
      call.integers(0);
      return tree.at(given[0]);
    }
    case GlobalRole::device: return inert;
    case GlobalRole::storage_type:
    case GlobalRole::number_type: break;
  }
  place.refuse("it calls a type of numbers, which no state dict does");
}

PickleValue make_storage(const PickleTree& tree, ValueIndex id, const PicklePlace& place) {
  const PickleValue& given = tree.at(id);
  if (given.kind != ValueKind::tuple) place.refuse("a persistent id is not a tuple");
  const Call call(tree, given.items, "a storage", place);
  call.expect_count(5, 6);
  call.expect(call.argument(0, ValueKind::text).text == "storage");
  if (tree.at(given.items[1]).kind == ValueKind::opaque) return tree.at(given.items[1]);  // such as complex numbers
  const PickleValue& type = call.argument(1, ValueKind::global);
  call.expect(type.role == GlobalRole::storage_type);
  PickleValue storage;
  storage.kind = ValueKind::storage;
  storage.number_type = type.number_type;
  storage.text = call.argument(2, ValueKind::text).text;
  call.argument(3, ValueKind::text);
  storage.integer = call.argument(4, ValueKind::integer).integer;
  call.expect(storage.integer >= 0);
  if (given.items.size() == 6) call.expect_nothing(5);  // a view of another storage, which PyTorch writes no more
  return storage;
}

namespace {

constexpr KnownGlobal kGlobals[] = {
    {"collections", "OrderedDict", GlobalRole::ordered_dictionary},
    {"torch._utils", "_rebuild_tensor", GlobalRole::tensor_v1},
    {"torch._utils", "_rebuild_tensor_v2", GlobalRole::tensor_v2},
    {"torch._utils", "_rebuild_parameter", GlobalRole::parameter},
    {"torch._utils", "_rebuild_parameter_with_state", GlobalRole::parameter_with_state},
    {"torch", "Size", GlobalRole::size},
    {"torch", "device", GlobalRole::device},
    {"torch", "DoubleStorage", GlobalRole::storage_type, NumberType::f64},
    {"torch", "FloatStorage", GlobalRole::storage_type, NumberType::f32},
    {"torch", "HalfStorage", GlobalRole::storage_type, NumberType::f16},
    {"torch", "BFloat16Storage", GlobalRole::storage_type, NumberType::bf16},
    {"torch", "LongStorage", GlobalRole::storage_type, NumberType::i64},
    {"torch", "IntStorage", GlobalRole::storage_type, NumberType::i32},
    {"torch", "ShortStorage", GlobalRole::storage_type, NumberType::i16},
    {"torch", "CharStorage", GlobalRole::storage_type, NumberType::i8},
    {"torch", "ByteStorage", GlobalRole::storage_type, NumberType::u8},
    {"torch", "BoolStorage", GlobalRole::storage_type, NumberType::boolean},
    {"torch", "float64", GlobalRole::number_type, NumberType::f64},
    {"torch", "float32", GlobalRole::number_type, NumberType::f32},
    {"torch", "float16", GlobalRole::number_type, NumberType::f16},
    {"torch", "bfloat16", GlobalRole::number_type, NumberType::bf16},
    {"torch", "int64", GlobalRole::number_type, NumberType::i64},
    {"torch", "int32", GlobalRole::number_type, NumberType::i32},
    {"torch", "int16", GlobalRole::number_type, NumberType::i16},
    {"torch", "int8", GlobalRole::number_type, NumberType::i8},
    {"torch", "uint8", GlobalRole::number_type, NumberType::u8},
    {"torch", "bool", GlobalRole::number_type, NumberType::boolean},
};

struct Opcode {
  uint8_t code;
  const char* name;
};

// Protocols 0 to 5, as Python's pickletools names them.
constexpr Opcode kOpcodes[] = {
    {'(', "MARK"},
    {'.', "STOP"},
    {'0', "POP"},
    {'1', "POP_MARK"},
    {'2', "DUP"},
    {'F', "FLOAT"},
    {'I', "INT"},
    {'J', "BININT"},
    {'K', "BININT1"},
    {'L', "LONG"},
    {'M', "BININT2"},
    {'N', "NONE"},
    {'P', "PERSID"},
    {'Q', "BINPERSID"},
    {'R', "REDUCE"},
    {'S', "STRING"},
    {'T', "BINSTRING"},
    {'U', "SHORT_BINSTRING"},
    {'V', "UNICODE"},
    {'X', "BINUNICODE"},
    {'a', "APPEND"},
    {'b', "BUILD"},
    {'c', "GLOBAL"},
    {'d', "DICT"},
    {'}', "EMPTY_DICT"},
    {'e', "APPENDS"},
    {'g', "GET"},
    {'h', "BINGET"},
    {'i', "INST"},
    {'j', "LONG_BINGET"},
    {'l', "LIST"},
    {']', "EMPTY_LIST"},
    {'o', "OBJ"},
    {'p', "PUT"},
    {'q', "BINPUT"},
    {'r', "LONG_BINPUT"},
    {'s', "SETITEM"},
    {'t', "TUPLE"},
    {')', "EMPTY_TUPLE"},
    {'u', "SETITEMS"},
    {'G', "BINFLOAT"},
    {0x80, "PROTO"},
    {0x81, "NEWOBJ"},
    {0x82, "EXT1"},
    {0x83, "EXT2"},
    {0x84, "EXT4"},
    {0x85, "TUPLE1"},
    {0x86, "TUPLE2"},
    {0x87, "TUPLE3"},
    {0x88, "NEWTRUE"},
    {0x89, "NEWFALSE"},
    {0x8a, "LONG1"},
    {0x8b, "LONG4"},
    {'B', "BINBYTES"},
    {'C', "SHORT_BINBYTES"},
    {0x8c, "SHORT_BINUNICODE"},
    {0x8d, "BINUNICODE8"},
    {0x8e, "BINBYTES8"},
    {0x8f, "EMPTY_SET"},
    {0x90, "ADDITEMS"},
    {0x91, "FROZENSET"},
    {0x92, "NEWOBJ_EX"},
    {0x93, "STACK_GLOBAL"},
    {0x94, "MEMOIZE"},
    {0x95, "FRAME"},
    {0x96, "BYTEARRAY8"},
    {0x97, "NEXT_BUFFER"},
    {0x98, "READONLY_BUFFER"},
};

}  // namespace

const KnownGlobal* find_global(std::string_view module, std::string_view name) {
  for (const KnownGlobal& known : kGlobals) {
    if (known.module == module && known.name == name) return &known;
  }
  return nullptr;
}

const char* opcode_name(uint8_t opcode) {
  for (const Opcode& known : kOpcodes) {
    if (known.code == opcode) return known.name;
  }
  return nullptr;
}

}  // namespace stoker::data
