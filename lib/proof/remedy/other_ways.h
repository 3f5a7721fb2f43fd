// SPDX-License-Identifier: Apache-2.0
// Operators of LibTorch replaced for particular shapes: convolutions by a slice and one without stride, products of
// matrices by loops of ours.
#pragma once

#include <map>
#include <string>

#include "proof/remedy/remedy.h"

namespace stoker::proof {

/// From here on, on CPUs, the operations of these families are computed so; of Way::without_onednn nothing is done
/// here. May be called again: the last ones count.
void compute_in_other_ways(const std::map<std::string, Way>& ways);

}  // namespace stoker::proof
