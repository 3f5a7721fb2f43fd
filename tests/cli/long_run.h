// SPDX-License-Identifier: Apache-2.0
// A run of about two seconds that tests interrupt, and the facts that hold for its end.
#pragma once

#include "program.h"
#include "tiny_data.h"

namespace stoker::cli {

inline constexpr int kLongRunEpochs = 40;
inline constexpr int kLongRunUpdates = 40 * 32;

/// 40 epochs of 32 updates, saved and evaluated at the end only.
Words long_run_words(const Words& more = {});
Launch long_run(const Workplace& work, const Words& more = {});
/// Whether the run in `run_dir` has finished this many epochs.
bool has_epochs(const Workplace& work, size_t epochs, const std::string& run_dir = "run");
/// Writes the data and starts; returns once two epochs are done.
void wait_for_two_epochs(Program& program, const Workplace& work);

/// The stop that was requested: this code and reason, a checkpoint in the last line that holds a manifest,
/// nothing half-written.
void expect_stopped(const Ended& ended, const Workplace& work, int exit_code, const std::string& reason);
/// The same command finishes the run; once more reports that it is finished.
void expect_same_command_finishes(const Workplace& work, const Words& words);
/// The same command has nothing to do and changes nothing; the table has one header and a row per epoch.
void expect_already_finished(const Workplace& work, const Words& words);

}  // namespace stoker::cli
