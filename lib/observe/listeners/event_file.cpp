// SPDX-License-Identifier: Apache-2.0
#include "observe/listeners/event_file.h"

#include <array>
#include <cstring>

namespace stoker::observe {
namespace {

constexpr std::array<uint32_t, 256> make_crc_table() {
  constexpr uint32_t kReflectedPolynomial = 0x82F63B78;
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? kReflectedPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}

/// A checksum of a file that holds checksums would otherwise be of little worth: TFRecord rotates and adds.
uint32_t masked_crc32c(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8;
}

std::string little_endian(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>((value >> (8 * i)) & 0xFF);
  return text;
}

/// Fields of one protobuf message, in the order in which they are added.
class Message {
 public:
  void add_double(int field, double value) {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    bytes_ += tag(field, kFixed64) + little_endian(bits, 8);
  }
  void add_float(int field, float value) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    bytes_ += tag(field, kFixed32) + little_endian(bits, 4);
  }
  void add_integer(int field, int64_t value) { bytes_ += tag(field, kVarint) + varint(static_cast<uint64_t>(value)); }
  void add_bytes(int field, std::string_view value) {
    bytes_ += tag(field, kLength) + varint(value.size()) + std::string(value);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  enum WireType { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

  static std::string varint(uint64_t value) {
    std::string text;
    for (; value >= 0x80; value >>= 7) text += static_cast<char>((value & 0x7F) | 0x80);
    return text + static_cast<char>(value);
  }
  static std::string tag(int field, WireType type) { return varint(static_cast<uint64_t>((field << 3) | type)); }

  std::string bytes_;
};

// Field numbers of the public schema.
namespace event_field {
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
}
namespace summary_field {
constexpr int kValue = 1;
}
namespace value_field {
constexpr int kTag = 1, kSimpleValue = 2;
}
namespace session_field {
constexpr int kStatus = 1, kStart = 1;  // the field, and its value START
}

Message event_at(double wall_seconds, int64_t step) {
  Message event;
  event.add_double(event_field::kWallTime, wall_seconds);
  event.add_integer(event_field::kStep, step);
  return event;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = make_crc_table();
  uint32_t crc = 0xFFFFFFFF;
  for (const char byte : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xFF];
  return ~crc;
}

std::string tf_record(std::string_view payload) {
  const std::string length = little_endian(payload.size(), 8);
  return length + little_endian(masked_crc32c(length), 4) + std::string(payload) +
         little_endian(masked_crc32c(payload), 4);
}

std::string version_record(double wall_seconds) {
  Message event;
  event.add_double(event_field::kWallTime, wall_seconds);
  event.add_bytes(event_field::kFileVersion, "brain.Event:2");
  return tf_record(event.bytes());
}

std::string restart_record(double wall_seconds, int64_t step) {
  Message session;
  session.add_integer(session_field::kStatus, session_field::kStart);
  Message event = event_at(wall_seconds, step);
  event.add_bytes(event_field::kSessionLog, session.bytes());
  return tf_record(event.bytes());
}

std::string scalars_record(double wall_seconds, int64_t step, const std::vector<Scalar>& scalars) {
  Message summary;
  for (const Scalar& scalar : scalars) {
    Message value;
    value.add_bytes(value_field::kTag, scalar.tag);
    value.add_float(value_field::kSimpleValue, static_cast<float>(scalar.value));
    summary.add_bytes(summary_field::kValue, value.bytes());
  }
  Message event = event_at(wall_seconds, step);
  event.add_bytes(event_field::kSummary, summary.bytes());
  return tf_record(event.bytes());
}

}  // namespace stoker::observe
