// SPDX-License-Identifier: Apache-2.0
// `train` as a server for tests. With other words than the server's it is `train`: ranks of a run are started from the
// file that started them.
#include "launcher.h"

int train_main(int argc, char** argv);  // apps/train/main.cpp

int main(int argc, char** argv) { return stoker::launcher::serve_or_run(argc, argv, train_main); }
