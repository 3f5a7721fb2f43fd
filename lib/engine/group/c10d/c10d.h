// SPDX-License-Identifier: Apache-2.0
// What differs between releases of c10d, behind a few names.
#pragma once

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <type_traits>

namespace stoker::engine::compat {

template <typename Options, typename = void>
struct HasLibUv : std::false_type {};
template <typename Options>
struct HasLibUv<Options, std::void_t<decltype(std::declval<Options>().useLibUV)>> : std::true_type {};

template <typename Options>
void without_lib_uv(Options& options) {
  if constexpr (HasLibUv<Options>::value) options.useLibUV = false;  // packages are built without it
}

/// `port` 0: the kernel chooses. Only a server makes the store; others wait for it.
inline c10::intrusive_ptr<c10d::TCPStore> make_store(const std::string& host, int port, bool is_server,
                                                     std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(port);
  options.isServer = is_server;
  options.waitWorkers = false;
  options.timeout = timeout;
  without_lib_uv(options);
  return c10::make_intrusive<c10d::TCPStore>(host, options);
}

}  // namespace stoker::engine::compat
