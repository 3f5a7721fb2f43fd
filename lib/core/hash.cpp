// SPDX-License-Identifier: Apache-2.0
#define XXH_INLINE_ALL
#include <openssl/evp.h>
#include <xxhash.h>

#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"

namespace stoker::core {

struct Hasher::State {
  XXH3_state_t xxh;
};

Hasher::Hasher() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->xxh); }
Hasher::~Hasher() = default;

void Hasher::add(const void* bytes, uint64_t count) { XXH3_128bits_update(&state_->xxh, bytes, count); }

std::string Hasher::hex() const {
  const XXH128_hash_t digest = XXH3_128bits_digest(&state_->xxh);
  return format("{:016x}{:016x}", digest.high64, digest.low64);
}

std::string hash_hex(std::string_view bytes) {
  Hasher hasher;
  hasher.add(bytes);
  return hasher.hex();
}

uint64_t hash64(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

namespace {

void require(bool worked) {
  if (!worked) throw Error(ErrorKind::bug, "OpenSSL computes no SHA-256");
}

EVP_MD_CTX* context_of(void* state) { return static_cast<EVP_MD_CTX*>(state); }

}  // namespace

Sha256::Sha256() : state_(EVP_MD_CTX_new()) {
  require(state_ != nullptr && EVP_DigestInit_ex(context_of(state_), EVP_sha256(), nullptr) == 1);
}
Sha256::~Sha256() { EVP_MD_CTX_free(context_of(state_)); }

void Sha256::add(const void* bytes, uint64_t count) {
  require(EVP_DigestUpdate(context_of(state_), bytes, count) == 1);
}

std::string Sha256::hex() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  require(EVP_DigestFinal_ex(context_of(state_), digest, &size) == 1);
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) hex += format("{:02x}", digest[i]);
  return hex;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 digest;
  digest.add(bytes.data(), bytes.size());
  return digest.hex();
}

}  // namespace stoker::core
