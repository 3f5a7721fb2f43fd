// SPDX-License-Identifier: Apache-2.0
// Differences between releases of c10d, behind a few names.
#pragma once

#include <torch/csrc/distributed/c10d/FileStore.hpp>
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

/// Whether a TCPStore takes a socket that is bound to one address; else it listens at all that the machine has.
template <typename Options, typename = void>
struct TakesSocket : std::false_type {};
template <typename Options>
struct TakesSocket<Options, std::void_t<decltype(std::declval<Options>().masterListenFd)>> : std::true_type {};

/// `socket`: at which it serves, or -1.
template <typename Options>
c10::intrusive_ptr<c10d::TCPStore> make_store(const std::string& host, int port, bool is_server,
                                              std::chrono::milliseconds timeout, int socket = -1) {
  Options options;
  options.port = static_cast<uint16_t>(port);
  options.isServer = is_server;
  options.waitWorkers = false;
  options.timeout = timeout;
  if constexpr (HasLibUv<Options>::value) options.useLibUV = false;  // packages are built without it
  if constexpr (TakesSocket<Options>::value) {
    if (socket >= 0) options.masterListenFd = socket;
  }
  return c10::make_intrusive<c10d::TCPStore>(host, options);
}

}  // namespace stoker::engine::compat
