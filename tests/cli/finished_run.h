// SPDX-License-Identifier: Apache-2.0
// A run that ended well, made once per test program and copied for each test that wants to damage one.
#pragma once

#include "tiny_data.h"

namespace stoker::cli {

/// The command of that run: two epochs of four updates, so that run/checkpoints holds step-00000004 and
/// -00000008.
Words finished_run_words(const Words& more = {});
/// Copies its data/ and run/ into `work`. The first call of the process trains.
void place_finished_run(const Workplace& work);

}  // namespace stoker::cli
