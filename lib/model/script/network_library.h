// SPDX-License-Identifier: Apache-2.0
// Networks in files that bring their own code: whether this process trusts them, and the library that opens them.
#pragma once

#include <memory>
#include <string>

#include "model/script/foreign_network.h"

namespace stoker::model {

/// Whether a name of --model is the path of a file: names of networks have neither a dot nor a slash.
bool is_network_file(const std::string& model);

/// From now on code of such files may run in this process. Before other threads start; never taken back.
void trust_network_files();
bool trusts_network_files();
/// Throws Error{config} where the network is an existing file and trust_network_files() was not called.
void require_trust(const std::string& model);

/// A file as it was read at one moment.
struct NetworkFile {
  std::string bytes;
  std::string sha256;  ///< SHA-256 of them, 64 digits
};
/// Throws Error{no_input}, {permission}, {io}.
NetworkFile read_network_file(const std::string& path);

/// `path` is for messages. Throws Error{config} where trust_network_files() was not called, Error{unavailable} where
/// the library is not installed or is of another version, Error{data} where the bytes are not a network.
std::unique_ptr<ForeignNetwork> open_foreign_network(const std::string& bytes, const std::string& path);

}  // namespace stoker::model
