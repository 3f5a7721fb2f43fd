// SPDX-License-Identifier: Apache-2.0
// Which rank this process is, as whoever started it says in the environment.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace stoker::app {

/// Of a rank that start_ranks() started: process id of the command that did.
inline constexpr const char* kStarterVariable = "STOKER_LAUNCHER";

struct RankPlace {
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  ///< among those of this machine
  std::string host = "127.0.0.1";      ///< where ranks meet
  int port = 0;
  bool starter_hosts = false;  ///< who started the ranks keeps the place where they meet; else rank 0 does
  std::string attempt;         ///< tells starts of one job apart
  std::string starter;         ///< "train", "torchrun", "mpirun", "srun"
};

/// The value of a variable of the environment; empty: not there.
using Environment = std::function<std::string(const std::string& name)>;
std::string process_environment(const std::string& name);

/// Nothing for a process that is alone. `devices`: processes per machine that were asked for, 1 where nobody asked.
/// Throws Error{config} for variables that contradict each other or `devices`.
std::optional<RankPlace> rank_place(const Environment& environment, int devices);

/// What start_ranks() gives to a rank that it starts, "NAME=value" each.
std::vector<std::string> variables_of(const RankPlace& place);

}  // namespace stoker::app
