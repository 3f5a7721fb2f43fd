// SPDX-License-Identifier: Apache-2.0
// `train bench`: images per second of one part of training by itself, and a test of learning rates.
#pragma once

#include "commands/command.h"

namespace stoker::train {

struct BenchFlags {
  std::string what;   ///< loader, step, all, ablate, lr
  int64_t seeds = 3;  ///< number of seeds for lr
  bool json = false;
};

[[gnu::weak]] Outcome bench(const Context& context, const BenchFlags& flags);

inline Command bench_command() {
  const auto flags = std::make_shared<BenchFlags>();
  Command command =
      make_command("bench", "WHAT [options]",
                   "Measures images per second of the data loader, the training step or both, or tries learning rates.",
                   bench, flags);
  command.arguments = {
      config::argument("WHAT",
                       "loader: batches from files; step: optimizer updates on one batch; all: both, and "
                       "training; ablate: training with each optimization disabled in turn; lr: learning rates, on "
                       "the same images.",
                       flags->what)};
  command.flags = {
      config::flag("json", "Prints the figures as JSON on standard output.", flags->json),
      config::flag("seeds", "N", "lr: trains with N seeds at each rate (default: 3).", flags->seeds, 2, 100)};
  command.takes = config::takes_all;
  command.reads_files = command.opens_networks = true;
  return command;
}

}  // namespace stoker::train
