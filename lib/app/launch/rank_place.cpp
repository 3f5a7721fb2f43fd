// SPDX-License-Identifier: Apache-2.0
#include "app/launch/rank_place.h"

#include <algorithm>
#include <cstdlib>

#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"

namespace stoker::app {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;

constexpr int kMostRanks = 1 << 20;

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorKind::config, message,
              "the variables of torchrun, mpirun and srun are read; unset those that are left over");
}

/// Nothing where the variable is not there. Throws for what is no number in [0, most].
std::optional<int> number_in(const Environment& environment, const std::string& name, int most = kMostRanks) {
  const std::string text = environment(name);
  if (text.empty()) return std::nullopt;
  const bool is_number =
      text.size() <= 7 && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  const int value = is_number ? std::atoi(text.c_str()) : -1;
  if (value < 0 || value > most) refuse(format("{}={} is no number from 0 to {}", name, core::printable(text), most));
  return value;
}

/// How one kind of starter names what it says.
struct Names {
  const char* starter;
  const char *rank, *size, *local_rank, *local_size;
};
constexpr Names kStarters[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    // Of a step of srun: the script of a batch job has the number of tasks as well, but is one process.
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"},
};

std::optional<RankPlace> place_by(const Environment& environment, const Names& names) {
  const std::optional<int> rank = number_in(environment, names.rank), size = number_in(environment, names.size);
  const bool is_slurm = std::string(names.starter) == "srun";
  if (is_slurm && !size) return std::nullopt;
  if (!rank && !size) return std::nullopt;
  if (!rank || !size)
    refuse(format("{} is set, but {} is not", rank ? names.rank : names.size, rank ? names.size : names.rank));
  if (*rank >= *size) refuse(format("{}={}, but {}={}", names.rank, *rank, names.size, *size));
  RankPlace place;
  place.starter = names.starter;
  place.rank = *rank;
  place.size = *size;
  place.local_rank = number_in(environment, names.local_rank).value_or(*rank);
  // "2(x4)" or "2,1" of SLURM says it for each machine; the first is near enough to share CPUs by.
  const std::string tasks = environment(names.local_size);
  place.local_size =
      is_slurm ? std::max(1, std::atoi(tasks.c_str())) : number_in(environment, names.local_size).value_or(*size);
  if (place.local_rank >= std::max(place.local_size, is_slurm ? kMostRanks : 1)) {
    refuse(format("{}={}, but {} processes are on this machine", names.local_rank, place.local_rank, place.local_size));
  }
  return place;
}

/// Where ranks meet when nobody says it: on this machine, at a port that follows from the job.
void find_meeting_point(const Environment& environment, RankPlace& place) {
  const std::string host = environment("MASTER_ADDR");
  const std::optional<int> port = number_in(environment, "MASTER_PORT", 65535);
  if (host.empty() && place.local_size < place.size) {
    refuse(format("{} of {} ranks are on other machines, and MASTER_ADDR does not say where rank 0 is",
                  place.size - place.local_size, place.size));
  }
  if (!host.empty()) place.host = host;
  std::string job;
  for (const char* const name : {"SLURM_JOB_ID", "SLURM_STEP_ID", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}) {
    job += environment(name) + "/";
  }
  if (!port && job == "////") refuse("MASTER_PORT does not say where the ranks meet");
  constexpr uint64_t kFirstPort = 20000, kPorts = 12000;  // below those that the kernel gives away
  place.port = port ? *port : static_cast<int>(kFirstPort + core::hash64(job) % kPorts);
}

}  // namespace

std::string process_environment(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

std::optional<RankPlace> rank_place(const Environment& environment, int devices) {
  std::optional<RankPlace> place;
  for (const Names& names : kStarters) {
    const std::optional<RankPlace> other = place_by(environment, names);
    if (!other) continue;
    if (place && (place->rank != other->rank || place->size != other->size)) {
      refuse(format("{} says rank {} of {}, {} says rank {} of {}", place->starter, place->rank, place->size,
                    other->starter, other->rank, other->size));
    }
    if (!place) place = other;
  }
  if (!place) return std::nullopt;
  const bool is_ours = !environment(kStarterVariable).empty();
  if (devices > 1 && devices != place->local_size && devices != place->size) {
    refuse(format("--devices {}, but {} started {} processes, {} of them on this machine", devices, place->starter,
                  place->size, place->local_size));
  }
  if (place->size == 1) return std::nullopt;
  find_meeting_point(environment, *place);
  place->starter_hosts = environment("TORCHELASTIC_USE_AGENT_STORE") == "True";
  place->attempt = environment("TORCHELASTIC_RESTART_COUNT");
  if (is_ours) place->starter = "train";
  return place;
}

std::vector<std::string> variables_of(const RankPlace& place) {
  return {format("RANK={}", place.rank),
          format("WORLD_SIZE={}", place.size),
          format("LOCAL_RANK={}", place.local_rank),
          format("LOCAL_WORLD_SIZE={}", place.local_size),
          "MASTER_ADDR=" + place.host,
          format("MASTER_PORT={}", place.port),
          "TORCHELASTIC_USE_AGENT_STORE=True",
          "TORCHELASTIC_RESTART_COUNT=" + place.attempt};
}

}  // namespace stoker::app
