// SPDX-License-Identifier: Apache-2.0
#include "train/failure/rank_location.h"

#include <algorithm>
#include <cstdlib>

#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"

namespace stoker::train {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;

constexpr int kMaxRanks = 1 << 20;

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorKind::config, message,
              "the variables of torchrun, mpirun and srun are read; unset those that are left over");
}

/// Nothing where the variable is not there. Throws for what is not a number in [0, most].
std::optional<int> number_in(const Environment& environment, const std::string& name, int most = kMaxRanks) {
  const std::string text = environment(name);
  if (text.empty()) return std::nullopt;
  const bool is_number =
      text.size() <= 7 && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  const int value = is_number ? std::atoi(text.c_str()) : -1;
  if (value < 0 || value > most)
    refuse(format("{}={} is not a number from 0 to {}", name, core::printable(text), most));
  return value;
}

/// The variables of one kind of starter.
struct Names {
  const char* starter;
  const char *rank, *size, *local_rank, *local_size;
};
constexpr Names kStarters[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    // For a step of srun: the script of a batch job has the number of tasks as well, but is one process.
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"},
};

bool is_here(const std::string& host) {
  return host.empty() || host == "localhost" || host == "::1" || host.rfind("127.", 0) == 0;
}

/// Who names ranks but not those of each machine has one per machine, unless they meet on the loopback address.
std::optional<RankLocation> place_by(const Environment& environment, const Names& names) {
  const std::optional<int> rank = number_in(environment, names.rank), size = number_in(environment, names.size);
  const bool is_slurm = std::string(names.starter) == "srun";
  if (is_slurm && !size) return std::nullopt;
  if (!rank && !size) return std::nullopt;
  if (!rank || !size)
    refuse(format("{} is set, but {} is not", rank ? names.rank : names.size, rank ? names.size : names.rank));
  if (*rank >= *size) refuse(format("{}={}, but {}={}", names.rank, *rank, names.size, *size));
  RankLocation place;
  place.starter = names.starter;
  place.rank = *rank;
  place.size = *size;
  const bool is_far = !is_slurm && environment(names.local_size).empty() && !is_here(environment("MASTER_ADDR"));
  if (is_far && !environment(names.local_rank).empty()) {
    refuse(format("{} is set, but {} is not", names.local_rank, names.local_size));
  }
  place.local_rank = number_in(environment, names.local_rank).value_or(is_far ? 0 : *rank);
  // "2(x4)" or "2,1" of SLURM lists each machine; the first is near enough to share CPUs by.
  const std::string tasks = environment(names.local_size);
  place.local_size = is_slurm ? std::max(1, std::atoi(tasks.c_str()))
                              : number_in(environment, names.local_size).value_or(is_far ? 1 : *size);
  if (place.local_rank >= std::max(place.local_size, is_slurm ? kMaxRanks : 1)) {
    refuse(format("{}={}, but {} processes are on this machine", names.local_rank, place.local_rank, place.local_size));
  }
  return place;
}

/// The first name of a list of SLURM: "node01" of "node[01-03,7],other".
std::string first_of(const std::string& nodes) {
  const size_t end = nodes.find_first_of("[,");
  if (end == std::string::npos || nodes[end] == ',') return nodes.substr(0, end);
  const size_t number_end = nodes.find_first_of(",-]", end);
  const size_t close = nodes.find(']', end);
  if (number_end == std::string::npos || close == std::string::npos) return "";
  const std::string rest = nodes.substr(close + 1);
  return nodes.substr(0, end) + nodes.substr(end + 1, number_end - end - 1) + rest.substr(0, rest.find_first_of("[,"));
}

void find_host(const Environment& environment, const std::string& listen, RankLocation& place) {
  if (listen.empty()) {
    throw Error(
        ErrorKind::config,
        format("{} of {} ranks are on other machines, and the address at which rank 0 waits for them is not set",
               place.size - place.local_size, place.size),
        "--listen ADDRESS, an address of the machine of rank 0 in a network that you trust: whoever reaches it "
        "can disturb the run, for the exchange has no authentication");
  }
  place.listen = listen;
  const std::string master = environment("MASTER_ADDR");
  const bool is_any = listen == "0.0.0.0" || listen == "::";
  place.host = !master.empty() ? master : is_any ? first_of(environment("SLURM_STEP_NODELIST")) : listen;
  if (place.host.empty()) refuse("MASTER_ADDR is not set; the other ranks cannot find rank 0");
}

/// A name that all ranks of the job share, on one machine or on several, and no other job at the same time.
void find_job(const Environment& environment, RankLocation& place) {
  std::vector<const char*> names = {"MASTER_PORT", "TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"};
  if (place.is_one_machine() || place.starter == "srun") names.push_back("SLURM_JOB_ID");
  if (place.starter == "srun") names.push_back("SLURM_STEP_ID");
  std::string words;
  bool is_known = false;
  for (const char* const name : names) {
    const std::string word = environment(name);
    is_known |= !word.empty();
    words += word + "/";
  }
  if (!is_known) refuse("MASTER_PORT is not set; the ranks cannot meet");
  place.job = format("{}-{}-{}-of-{}", place.starter, core::hash_hex(words).substr(0, 16), place.attempt, place.size);
  constexpr uint64_t kFirstPort = 20000, kPorts = 12000;  // below those that the kernel gives away
  place.port = number_in(environment, "MASTER_PORT", 65535)
                   .value_or(static_cast<int>(kFirstPort + core::hash64(words) % kPorts));
}

}  // namespace

std::string process_environment(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

std::optional<RankLocation> rank_location(const Environment& environment, const RequestedRanks& requested) {
  std::optional<RankLocation> place;
  for (const Names& names : kStarters) {
    const std::optional<RankLocation> other = place_by(environment, names);
    if (!other) continue;
    if (place && (place->rank != other->rank || place->size != other->size)) {
      refuse(format("{} sets rank {} of {}, {} sets rank {} of {}", place->starter, place->rank, place->size,
                    other->starter, other->rank, other->size));
    }
    if (!place) place = other;
  }
  if (!place) return std::nullopt;
  const std::string own_job = environment(kStarterVariable);
  if (requested.devices > 1 && requested.devices != place->local_size && requested.devices != place->size) {
    refuse(format("--devices {}, but {} started {} processes, {} of them on this machine", requested.devices,
                  place->starter, place->size, place->local_size));
  }
  if (place->size == 1) return std::nullopt;
  place->attempt = number_in(environment, "TORCHELASTIC_RESTART_COUNT").value_or(0);
  if (!own_job.empty()) {
    place->starter = "train";
    place->job = own_job;
    return place;
  }
  place->has_store = environment("TORCHELASTIC_USE_AGENT_STORE") == "True";
  if (!place->is_one_machine()) find_host(environment, requested.listen, *place);
  find_job(environment, *place);
  return place;
}

std::vector<std::string> variables_of(const RankLocation& place) {
  return {format("RANK={}", place.rank),
          format("WORLD_SIZE={}", place.size),
          format("LOCAL_RANK={}", place.local_rank),
          format("LOCAL_WORLD_SIZE={}", place.local_size),
          format("{}={}", kStarterVariable, place.job),
          format("TORCHELASTIC_RESTART_COUNT={}", place.attempt)};
}

}  // namespace stoker::train
