// SPDX-License-Identifier: Apache-2.0
// The operations of a request, tried with one remedy in another process, which is started again after each crash.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "proof/proof.h"

namespace stoker::proof {

struct Tried {
  std::string family, text, library;
  std::set<Alternative> ways;  ///< that may help it
  int64_t calls = 0;           ///< in the passes of the request
  bool is_right = false, was_refused = false;
  std::string fault{};  ///< what is wrong; "SIGFPE" and the like for a crash
  double ratio = 0, seconds = 0;
};

struct Trial {
  std::map<std::string, Tried> operations;  ///< by key and number of threads
  std::string obstacle{};  ///< why there are none or not all: no memory, a network that refuses its input
  std::string crash{};     ///< in which operation the passes end even without oneDNN: "SIGILL in convolution, ..."
  bool was_given_up = false;
  int64_t peak_bytes = 0;

  bool is_right() const;
  double seconds() const;  ///< duration of all calls of the passes together
};

/// When a trial has measured enough.
struct Patience {
  double most_seconds = std::numeric_limits<double>::infinity();  ///< time limit of all calls together
  bool ends_at_fault = false;                                     ///< at the first operation that is wrong
};

/// The kind of operations that one fault of a library may affect: when some of a kind have ended the process, the
/// rest of it counts as wrong without being tried.
inline const std::string kUntried = "not tried: others of its kind ended the process";
std::string kind_of(const std::string& family, const std::string& library);

/// `only`: those operations to try; empty: all. What was given up is not right.
Trial tried(const Request& request, const Remedy& remedy, const ProverSettings& settings,
            const std::set<std::string>& only = {}, const Patience& patience = {});

}  // namespace stoker::proof
