// SPDX-License-Identifier: Apache-2.0
// Proves in another process that libraries compute a network's operations correctly on this machine, and finds another
// way to compute those that are wrong.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proof/remedy/remedy.h"
#include "proof/request.h"

namespace stoker::proof {

/// An operation that a library computes wrongly, or in which it crashes or hangs.
struct Fault {
  std::string operation;  ///< "convolution, input 16x64x56x56, weight 64x64x3x3, stride 1, float32, 2 threads"
  std::string library;    ///< "oneDNN 3.7.2"
  std::string what;       ///< "output: 12 of 512 elements wrong, off by 37% of the largest value, at (0, 3, 0, 0)"
};

struct Proof {
  bool is_right = false;      ///< all operations, computed with `remedy`
  Remedy remedy;              ///< beyond what was there before
  std::vector<Fault> faults;  ///< without it
  std::string obstacle{};     ///< why nothing was proven: memory, a network that refuses its input; empty: it was
  int64_t operations = 0;     ///< distinct ones
  int64_t untried = 0;        ///< besides, that LibTorch refuses or memory is too small for
  double worst_ratio = 0;     ///< largest ratio of errors to what rounding may do, in [0, 1] where all is right
  double seconds = 0;         ///< that proving took
  int64_t peak_bytes = 0;     ///< that the other process held at most
  bool was_kept = false;      ///< read from where an earlier proof was kept
};

STOKER_JSON_FIELDS(Fault, operation, library, what)
STOKER_JSON_FIELDS(Proof, is_right, remedy, faults, obstacle, untried, operations, worst_ratio, seconds, peak_bytes)

struct ProverSettings {
  std::string program{};          ///< path of stoker-prove
  bool compares_all = false;      ///< every element instead of a sample
  bool may_limit_isa = true;      ///< oneDNN has not computed in this process yet
  double patience_seconds = 120;  ///< without progress until an operation counts as hanging
};

/// Tries all operations with `before`, what this process computes with already; where some are wrong, finds the
/// fastest way in which all are right. Where there is none, Proof::is_right is false. Throws Error{os} where the
/// program cannot be started, StopRequested.
Proof prove(const Request& request, const Remedy& before, const ProverSettings& settings);

}  // namespace stoker::proof
