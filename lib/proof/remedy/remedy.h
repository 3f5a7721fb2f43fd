// SPDX-License-Identifier: Apache-2.0
// Other ways to compute what a library computes wrongly: which ones there are, and how this process takes them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/text/json.h"
#include "proof/operation/operation.h"

namespace stoker::proof {

/// Another way for one operation.
enum class Alternative {
  without_onednn,  ///< LibTorch's own code, or the BLAS that it calls
  sliced,          ///< a convolution of 1 x 1 with a stride: every other pixel is taken first
  in_float32,      ///< a convolution of a reduced type, without oneDNN, rounded at the end
  own_product,     ///< a product of matrices by loops of ours
  own_sums,        ///< batch norm in training with statistics of ours
};

struct Remedy {
  bool answers_cache_sizes = false;  ///< see cache_sizes.h
  std::string isa{};                 ///< ONEDNN_MAX_CPU_ISA; empty: as it is
  bool onednn_off = false;           ///< for all operations
  std::map<std::string, Alternative>
      ways{};  ///< by family_of() an operation: probes compute it for other numbers of images

  bool is_empty() const { return !answers_cache_sizes && isa.empty() && !onednn_off && ways.empty(); }
  bool operator==(const Remedy& other) const {
    return answers_cache_sizes == other.answers_cache_sizes && isa == other.isa && onednn_off == other.onednn_off &&
           ways == other.ways;
  }
};

void to_json(core::Json& json, const Remedy& remedy);
/// Throws Json::exception for what to_json() did not write.
void from_json(const core::Json& json, Remedy& remedy);
/// For people: "oneDNN limited to AVX2", "3 operations without oneDNN". Empty where there is none.
std::string text_of(const Remedy& remedy);
/// "without oneDNN"
std::string text_of(Alternative way);

/// Applied by every start before its proof: the answer to oneDNN's known fault where this processor hides its caches.
Remedy known_remedy();

/// The alternatives for an operation.
std::vector<Alternative> alternatives_for(const Operation& operation);
std::string name_of(Alternative way);
/// Nothing for other texts than name_of() gives.
std::optional<Alternative> alternative_of(const std::string& name);

/// From here on this process computes in this way. A limit of the instruction set has an effect only before oneDNN
/// computes for the first time. May be called again: the last remedy counts.
void apply(const Remedy& remedy);

}  // namespace stoker::proof
