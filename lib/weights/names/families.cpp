// SPDX-License-Identifier: Apache-2.0
// Which dialects each family of networks is found in.
#include "weights/names/dialect.h"

namespace stoker::weights {

std::vector<Dialect> dialects_of(const std::string& /*network*/) { return {{"torchvision", "", {{"*", "*"}}, {}, 0}}; }

}  // namespace stoker::weights
