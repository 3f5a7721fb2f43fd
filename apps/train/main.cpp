// SPDX-License-Identifier: Apache-2.0
// The program `train`. Everything is in the rooms under lib/; see lib/README.md.
#include <cstdlib>

#include "app/app.h"

int main(int argc, char** argv) {
  // Leaves without running destructors of libraries: they could change an exit code that schedulers read.
  std::_Exit(stoker::app::run(argc, argv));
}
