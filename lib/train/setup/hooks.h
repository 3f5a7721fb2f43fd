// SPDX-License-Identifier: Apache-2.0
// Where a program of tests changes a run: `train` links hooks.cpp, which changes nothing; tests/hooks/train_with_hooks
// links definitions that slow copies down and switch instrumentation off and on, for scripts/bench.
#pragma once

#include <memory>

#include "config/options.h"
#include "data/feed/device_feed.h"
#include "engine/run/events.h"
#include "observe/diagnosis/diagnosis.h"

namespace stoker::train {

/// May set FeedSettings::on_copy.
void hook_feed(const config::ResolvedLoaderOptions& options, data::FeedSettings& settings);
/// May change the facts about a run.
void hook_facts(const config::ResolvedLoaderOptions& options, observe::DiagnosisFacts& facts);
/// An observer that stands between the run and `observers`; nullptr: none. `observers` outlives it.
std::unique_ptr<engine::Observer> hook_observers(engine::Observer& observers);

}  // namespace stoker::train
