// SPDX-License-Identifier: Apache-2.0
#include "data/archive/pickle_globals.h"

namespace stoker::data {
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
