// SPDX-License-Identifier: Apache-2.0
// The program stoker-train: `train` with LibTorch. Everything is in the modules under lib/; see lib/README.md.
#include <cstdlib>

#include "commands/app.h"
#include "core/system/stop_signal.h"
#include "model/script/network_library.h"
#include "train/process/failure.h"

namespace {

// LibTorch's constructors take some tenths of a second before main() begins, in which a signal of a scheduler would
// kill the process with another exit code. What stands in this section runs before them.
using Preinit = void (*)(int, char**, char**);
[[gnu::section(".preinit_array"), gnu::used]] const Preinit install_before_libraries = [](int, char**, char**) {
  stoker::core::install_stop_signals();
};

}  // namespace

int main(int argc, char** argv) {
  const auto begin = [](const stoker::config::CommonFlags& flags) {
    if (flags.trust_model) stoker::model::trust_network_files();
  };
  // Leaves without running destructors of libraries: they could change an exit code that schedulers read.
  std::_Exit(stoker::train::run(argc, argv, {stoker::train::prepare_process, begin, stoker::train::error_of}));
}
