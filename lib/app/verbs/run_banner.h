// SPDX-License-Identifier: Apache-2.0
// What a run says of itself before it starts, collected from its parts.
#pragma once

#include "app/app.h"
#include "config/resolution.h"
#include "data/open_datasets.h"
#include "engine/loop/trainer.h"
#include "observe/listeners/banner.h"

namespace stoker::app {

/// Without what ranks, caches, memory and the checkpoint add.
observe::BannerFacts banner_facts(const Invocation& invocation, const config::Resolution& resolution,
                                  const data::Datasets& datasets, const engine::TrainerSettings& settings,
                                  const engine::Learner& learner, const data::LoaderStats& loader);

}  // namespace stoker::app
