// SPDX-License-Identifier: Apache-2.0
// Which rank this process is, from the environment that its starter set.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace stoker::train {

/// For a rank that start_ranks() started: the job.
inline constexpr const char* kStarterVariable = "STOKER_LAUNCHER";

struct RankLocation {
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  ///< among those of this machine
  std::string job;                     ///< the same for all ranks of one attempt, and for no others
  // For several machines:
  std::string host;        ///< where ranks meet
  int port = 0;            ///< there
  std::string listen;      ///< at which of its addresses rank 0 waits for the others
  bool has_store = false;  ///< the starter keeps a store of c10d at host and port
  int64_t attempt = 0;     ///< how often the starter has started the ranks before
  std::string starter;     ///< "train", "torchrun", "mpirun", "srun"
  bool is_one_machine() const { return local_size == size; }
};

/// The value of a variable of the environment; empty: not there.
using Environment = std::function<std::string(const std::string& name)>;
std::string process_environment(const std::string& name);

struct RequestedRanks {
  int devices = 1;     ///< processes per machine; 1: not given
  std::string listen;  ///< where rank 0 waits for ranks on other machines; empty: not given
};

/// Nothing for a process that is alone. Throws Error{config} for variables that contradict each other or `requested`,
/// and for ranks on several machines without an address at which rank 0 may listen.
std::optional<RankLocation> rank_location(const Environment& environment, const RequestedRanks& requested);

/// The environment of a rank that start_ranks() starts, "NAME=value" each.
std::vector<std::string> variables_of(const RankLocation& place);

}  // namespace stoker::train
