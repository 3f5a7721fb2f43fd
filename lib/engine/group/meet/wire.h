// SPDX-License-Identifier: Apache-2.0
// How a meeting point and those who come to it talk: a question and its answer, each a message with its length before
// it.
#pragma once

#include <netdb.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

namespace stoker::engine {

/// What can be asked; what follows in the question, and what the answer holds.
enum class MeetingCall : int64_t {
  join,         ///< run, rank -> whether it is this run's meeting point
  set,          ///< key, value -> nothing
  find,         ///< key -> whether it is there, value
  compare_set,  ///< key, expected, value -> the value that holds now; see c10d::Store::compareSet
  add,          ///< key, number -> the sum
  erase,        ///< key -> whether it was there
  count,        ///< -> number of keys
};

inline constexpr size_t kLongestMessage = 64 << 20;  // bytes: whoever claims more is none of ours

inline std::string framed(const std::string& message) {
  const uint64_t size = message.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof(size)) + message;
}

/// Takes the first message out of `bytes`; nothing where it is not complete. Sets `is_foreign` where it cannot be one.
inline std::optional<std::string> take_message(std::string& bytes, bool& is_foreign) {
  uint64_t size = 0;
  if (bytes.size() < sizeof(size)) return std::nullopt;
  std::memcpy(&size, bytes.data(), sizeof(size));
  is_foreign = size > kLongestMessage;
  if (is_foreign || bytes.size() < sizeof(size) + size) return std::nullopt;
  std::string message = bytes.substr(sizeof(size), size);
  bytes.erase(0, sizeof(size) + size);
  return message;
}

/// What getaddrinfo() finds.
struct FreeAddresses {
  void operator()(addrinfo* first) const { ::freeaddrinfo(first); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

/// Null where the name is not known.
inline Addresses addresses_of(const std::string& host, int port, int flags) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* first = nullptr;
  return Addresses(::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &first) == 0 ? first : nullptr);
}

/// A socket, closed in the end.
class Socket {
 public:
  explicit Socket(int descriptor = -1) : descriptor_(descriptor) {}
  ~Socket();
  Socket(Socket&& other) noexcept : descriptor_(other.descriptor_) { other.descriptor_ = -1; }
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int get() const { return descriptor_; }
  void set_option(int level, int name, int value = 1) const {
    ::setsockopt(descriptor_, level, name, &value, sizeof(value));
  }

 private:
  int descriptor_;
};

}  // namespace stoker::engine
