// SPDX-License-Identifier: Apache-2.0
// The names of networks, for programs without LibTorch.
#pragma once

#include <string>
#include <vector>

namespace stoker::model {

std::vector<std::string> model_names();

}  // namespace stoker::model
