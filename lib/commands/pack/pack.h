// SPDX-License-Identifier: Apache-2.0
// `train pack`: packs a data set into tar shards.
#pragma once

#include "commands/command.h"

namespace stoker::train {

struct PackFlags {
  std::string dataset;  ///< data set; with --verify or --index a folder of shards
  std::string output;   ///< folder for the shards
  std::string shard_size = "512MB";
  int64_t max_side = 0, quality = 0;  ///< 0: not given
  std::vector<std::string> splits;
  bool progressive_to_baseline = false;
  bool verify = false, index = false;
  std::string progress;  ///< bar, plain or off; empty: bar
};

Command pack_command();
[[gnu::weak]] Outcome pack(const Context& context, const PackFlags& flags);

}  // namespace stoker::train
