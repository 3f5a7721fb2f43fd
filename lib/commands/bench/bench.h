// SPDX-License-Identifier: Apache-2.0
// `train bench`: images per second of one part of training by itself.
#pragma once

#include "commands/command.h"

namespace stoker::train {

struct BenchFlags {
  std::string what;  ///< loader, step, all, ablate
  bool json = false;
};

Command bench_command();
[[gnu::weak]] Outcome bench(const Context& context, const BenchFlags& flags);

}  // namespace stoker::train
