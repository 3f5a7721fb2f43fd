// SPDX-License-Identifier: Apache-2.0
// The program `train`: the command line, and all that needs no LibTorch. For the rest it becomes stoker-train.
#include <cstdlib>

#include "commands/app.h"
#include "core/system/stop_signal.h"
#include "train/failure/crash_handler.h"
#include "train/failure/result_output.h"

namespace {

void prepare() {
  stoker::train::reopen_standard_descriptors();
  stoker::train::install_crash_handler();
  stoker::core::install_stop_signals();
}

}  // namespace

int main(int argc, char** argv) {
  const auto begin = [](const stoker::config::CommonFlags&) {};
  const auto error_of = [](const std::exception& error, const stoker::config::Options&) {
    return stoker::train::plain_error_of(error);
  };
  std::_Exit(stoker::train::run(argc, argv, {prepare, begin, error_of}));
}
