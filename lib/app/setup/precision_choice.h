// SPDX-License-Identifier: Apache-2.0
// Whether mixed precision is worth it on a CPU, measured on the network that is trained. How it is measured:
// engine/probe/precision_speed.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "app/setup/settings.h"
#include "engine/probe/probe_input.h"
#include "engine/step/learner.h"
#include "engine/task/task.h"

namespace stoker::app {

/// Gives every rank of a run what find() returns on the root; empty: there is one rank.
using FromRoot = std::function<std::string(const std::function<std::string()>& find)>;

/// On a CPU: where amp is automatic and the network decides, settings learn how much faster it trains in bfloat16, so
/// that amp is decided afterwards. Where amp was asked for, warns when training is slower with it. Takes some tenths of
/// a second; the learner is as before. Returns what it measured: how many times as fast as in float32 the network
/// trains in bfloat16. Throws Error{unavailable} when amp was asked for and cannot be computed here.
std::optional<double> measure_amp(Settings& settings, engine::Learner& learner, const engine::Task& task,
                                  const engine::ProbeSettings& noise, const FromRoot& from_root = {});

}  // namespace stoker::app
