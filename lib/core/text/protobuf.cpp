// SPDX-License-Identifier: Apache-2.0
#include "core/text/protobuf.h"

#include <cstring>

namespace stoker::core {
namespace {

enum WireType { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

void append_varint(uint64_t value, std::string& bytes) {
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7F) | 0x80);
  bytes += static_cast<char>(value);
}

void append_tag(int field, WireType type, std::string& bytes) {
  append_varint(static_cast<uint64_t>(field) << 3 | type, bytes);
}

void append_little_endian(uint64_t value, int count, std::string& bytes) {
  for (int i = 0; i < count; ++i) bytes += static_cast<char>((value >> (8 * i)) & 0xFF);
}

}  // namespace

void ProtobufMessage::add_double(int field, double value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  append_tag(field, kFixed64, bytes_);
  append_little_endian(bits, 8, bytes_);
}

void ProtobufMessage::add_float(int field, float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  append_tag(field, kFixed32, bytes_);
  append_little_endian(bits, 4, bytes_);
}

void ProtobufMessage::add_integer(int field, int64_t value) {
  append_tag(field, kVarint, bytes_);
  append_varint(static_cast<uint64_t>(value), bytes_);
}

void ProtobufMessage::add_bytes(int field, std::string_view value) {
  append_tag(field, kLength, bytes_);
  append_varint(value.size(), bytes_);
  bytes_.append(value);
}

}  // namespace stoker::core
