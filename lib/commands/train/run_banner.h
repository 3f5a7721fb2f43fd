// SPDX-License-Identifier: Apache-2.0
// The banner of a run, collected from its parts.
#pragma once

#include "commands/command.h"
#include "config/resolution.h"
#include "data/open_datasets.h"
#include "engine/loop/trainer.h"
#include "observe/listeners/banner.h"

namespace stoker::train {

/// What is known before anything is measured: program, command and data.
observe::BannerFacts known_facts(const Context& context, const config::ResolvedOptions& options,
                                 const data::Datasets& datasets);
/// Without what ranks, caches, memory and the checkpoint add.
observe::BannerFacts banner_facts(const Context& context, const config::Resolution& resolution,
                                  const data::Datasets& datasets, const engine::TrainerSettings& settings,
                                  const engine::Learner& learner, const data::LoaderStats& loader);

}  // namespace stoker::train
