// SPDX-License-Identifier: Apache-2.0
// The numbers of one optimizer step, as every kernel of this module takes them.
#pragma once

#include <cstdint>

namespace stoker::optim {

/// g += weight_decay * p;  m = momentum * m + g;  p -= lr * (nesterov ? g + momentum * m : m).
/// As torch.optim.SGD with dampening 0 (Sutskever et al. 2013). Without momentum: p -= lr * g.
struct SgdRule {
  double lr = 0;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
};

/// Kingma & Ba 2015, algorithm 1, with epsilon outside the corrected root as torch.optim.Adam has it.
/// Decoupled (AdamW: Loshchilov & Hutter 2019, algorithm 2): p *= 1 - lr * weight_decay; else g +=
/// weight_decay * p.
struct AdamRule {
  double lr = 0;
  double beta1 = 0;
  double beta2 = 0;
  double eps = 0;
  double weight_decay = 0;
  bool decoupled = false;
};

/// sq = alpha * sq + (1 - alpha) * g^2;  u = g / (sqrt(sq) + eps);  m = momentum * m + u;  p -= lr * m. As
/// torch.optim.RMSprop, not centred; without momentum p -= lr * u. Decay is added to the gradient.
struct RmsPropRule {
  double lr = 0;
  double alpha = 0;
  double eps = 0;
  double momentum = 0;
  double weight_decay = 0;
};

}  // namespace stoker::optim
