// SPDX-License-Identifier: Apache-2.0
// Alone in its object file, so that a program with definitions of its own does not link these.
#include "train/setup/hooks.h"

namespace stoker::train {

void hook_feed(const config::ResolvedLoaderOptions&, data::FeedSettings&) {}
void hook_facts(const config::ResolvedLoaderOptions&, observe::DiagnosisFacts&) {}
std::unique_ptr<engine::Observer> hook_observers(engine::Observer&) { return nullptr; }

}  // namespace stoker::train
