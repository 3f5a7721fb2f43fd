// SPDX-License-Identifier: Apache-2.0
// XXH3-128 digests: checkpoint integrity, fingerprints of configuration and data, hash splits. They detect accidents,
// not attackers; SHA-256 names files that are trusted.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace stoker::core {

/// Digest of everything given to add(), in order.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher& operator=(Hasher&&) = delete;  // not copied, not moved

  void add(const void* bytes, uint64_t count);
  void add(std::string_view text) { add(text.data(), text.size()); }
  std::string hex() const;  ///< 32 lower-case hexadecimal digits

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string hash_hex(std::string_view bytes);
/// 64 bits of hash, the same on every machine.
uint64_t hash64(std::string_view bytes);

/// SHA-256 by OpenSSL of everything given to add(), in order.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void add(const void* bytes, uint64_t count);
  std::string hex();  ///< once, at the end: 64 lower-case hexadecimal digits, as sha256sum prints them

 private:
  void* const state_;
};

std::string sha256_hex(std::string_view bytes);

}  // namespace stoker::core
