// SPDX-License-Identifier: Apache-2.0
// How many additions and multiplications a network takes, counted while it computes one image of noise.
#pragma once

#include "engine/probe/probe_input.h"

namespace stoker::engine {

struct NetworkFlop {
  double forward = 0;   ///< FLOP of the forward pass of one image or clip
  double grouped = 0;   ///< part of `forward` in convolutions of several groups
  double products = 0;  ///< part of `forward` in matrix multiplications
  double training = 0;  ///< and of its gradients: of weights that are trained, of inputs that need one
};

/// Convolutions and matrix multiplications, as LibTorch's dispatcher meets them: an addition and a multiplication are
/// two. Normalizations, activations and the like are not counted, as in fvcore and in PyTorch's FlopCounterMode. One
/// image is computed in float32, large squares smaller and scaled by their area; the learner is as before afterwards.
/// Throws what the network throws, for example when it takes no images of another size.
NetworkFlop network_flop(Learner& learner, const ProbeSettings& settings);

}  // namespace stoker::engine
