// SPDX-License-Identifier: Apache-2.0
// The output when a fault ends the process, in this program or in a library: the signals FPE, ILL,
// BUS, SEGV and ABRT.
#pragma once

namespace stoker::train {

/// From now on such a signal writes an error, a hint and the last line, replaces the file of core/crash/crash_file.h,
/// runs the command of prepare_crash_command(), and leaves with 128 + signal. After libraries have loaded: handlers
/// that they installed are replaced, those of UCX unless the user requests them. Nothing under a sanitizer, which has
/// its own.
void install_crash_handler();

/// Which of several ranks reports it.
void set_rank_of_crashes(int rank);

}  // namespace stoker::train
