// SPDX-License-Identifier: Apache-2.0
#include "model/names.h"

namespace stoker::model {

std::vector<std::string> model_names() {
  return {
#define STOKER_NETWORK(name, factory, usual, takes_drop_path, takes_clips) #name,
#include "model/networks.inc"
#undef STOKER_NETWORK
  };
}

}  // namespace stoker::model
