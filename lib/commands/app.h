// SPDX-License-Identifier: Apache-2.0
// The program: which command runs, and how every end of it becomes an exit code and a last line.
#pragma once

namespace stoker::train {

/// Runs the command line and returns the exit code of docs/exit-codes.md. Never throws.
int run(int argc, const char* const* argv);

}  // namespace stoker::train
