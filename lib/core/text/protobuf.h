// SPDX-License-Identifier: Apache-2.0
// Protocol Buffers' wire format, writing only: https://protobuf.dev/programming-guides/encoding. Field numbers are the
// caller's. Written here, since what we write (TensorBoard's events, ONNX) needs 40 lines of it, and Google's library
// differs between the releases that we support and brings generated code.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stoker::core {

/// Fields of one message, in the order in which they are added.
class ProtobufMessage {
 public:
  void add_double(int field, double value);
  void add_float(int field, float value);
  void add_integer(int field, int64_t value);
  /// Text, bytes, or a message that lies in this one.
  void add_bytes(int field, std::string_view value);
  void add_message(int field, const ProtobufMessage& message) { add_bytes(field, message.bytes_); }

  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace stoker::core
