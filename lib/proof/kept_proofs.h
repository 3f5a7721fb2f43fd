// SPDX-License-Identifier: Apache-2.0
// Proofs of this machine, kept in files so that the next start takes milliseconds. Never needed: what cannot
// be read or written is proven again.
#pragma once

#include <optional>
#include <string>

#include "proof/proof.h"

namespace stoker::proof {

/// The key of a proof besides the request: the processor with its microcode and caches, the libraries
/// that are loaded, `program`, `device_text`, and the variables of the environment that libraries read.
core::Json computing_machine(const std::string& program, const std::string& device_text);

class KeptProofs {
 public:
  /// `folder` is made, private, when something is kept. Empty: nothing is.
  explicit KeptProofs(std::string folder = usual_folder());

  /// $XDG_CACHE_HOME/stoker/proofs, else ~/.cache/stoker/proofs; empty where there is no home.
  static std::string usual_folder();

  /// Nothing where none was kept, or others than this user could have written it.
  std::optional<Proof> find(const core::Json& machine, const Request& request, const Remedy& before) const;
  /// Keeps a proof that all is right. No error where it cannot.
  void keep(const core::Json& machine, const Request& request, const Remedy& before, const Proof& proof) const;

 private:
  std::string folder_;
};

}  // namespace stoker::proof
