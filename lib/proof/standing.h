// SPDX-License-Identifier: Apache-2.0
// The state of the libraries that this process computes with: what was proven, what is wrong, and the remedy in
// force. One for the process, as the libraries are.
#pragma once

#include <string>
#include <vector>

#include "proof/proof.h"

namespace stoker::proof {

/// How much --prove-backend proves.
enum class Effort { off, automatic, full };

struct Standing {
  bool was_off = false;       ///< --prove-backend off
  std::string unproven{};     ///< why nothing was proven although it was requested; empty: it was
  Remedy remedy;              ///< in force
  std::vector<Fault> faults;  ///< the faults that it answers
  int64_t operations = 0;     ///< proven, distinct ones
  int64_t untried = 0;        ///< besides
  double seconds = 0;         ///< that proofs took
  int64_t peak_bytes = 0;     ///< that this process and that of a proof held together; 0: nothing was tried
  bool was_kept = false;      ///< all of it was read from files
};
STOKER_JSON_FIELDS(Standing, was_off, unproven, remedy, faults, operations, untried, seconds, peak_bytes, was_kept)

const Standing& standing();

/// The remedy of a fault that is known without any proof (cache_sizes.h): to be called before the first operation.
void apply_known_remedy();

/// Proves the request unless this process or the file of an earlier proof has done so, and computes with the
/// remedy from here on. `program`: path of stoker-prove; empty: not installed, so that nothing is proven. Throws
/// Error{backend} where there is no way in which all operations are right.
void prove_and_apply(const Request& request, Effort effort, const std::string& program, const std::string& device_text,
                     bool may_limit_isa);

/// The value of standing(), for another rank of the run, which takes it over with follow().
std::string standing_json();
void follow(const std::string& json);

/// One line: "61 operations are computed correctly (1.2 s)"; "not proven: ...".
std::string summary_text(const Standing& standing);
/// The faults and the alternatives in use, in one line; empty where there were none.
std::string warning_text(const Standing& standing);

}  // namespace stoker::proof
