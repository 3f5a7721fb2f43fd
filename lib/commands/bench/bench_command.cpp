// SPDX-License-Identifier: Apache-2.0
#include "commands/bench/bench.h"

namespace stoker::train {

Command bench_command() {
  const auto flags = std::make_shared<BenchFlags>();
  Command command;
  command.name = "bench";
  command.usage = "train bench WHAT [options]";
  command.summary = "Measures how fast a part of training is by itself: images per second.";
  command.words = {config::word("WHAT",
                                "loader: batches from files; step: optimizer updates on one batch; all: both, and "
                                "training; ablate: training without each of the things that make it fast, in turn.",
                                flags->what)};
  command.flags = {config::flag("json", "Prints the figures as JSON on standard output.", flags->json)};
  command.takes = config::takes_all;
  command.reads_files = command.opens_networks = true;
  attach(command, bench, flags);
  return command;
}

}  // namespace stoker::train
