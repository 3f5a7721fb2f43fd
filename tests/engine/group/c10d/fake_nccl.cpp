// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/group/c10d/fake_nccl.h"

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/group/c10d/cuda_stream.h"

/// The state of one rank. Guarded by the mutex below.
struct ncclComm {
  std::string clique;
  int rank = 0, size = 1, slow_asks = 0, exchanges = 0;
  ncclResult_t state = ncclSuccess;
};

namespace stoker::fake_nccl {
namespace {

struct Reduction {
  std::vector<float> sum;
  std::set<int> ranks;
};

std::mutex mutex;
std::map<std::string, std::set<int>> present;                                        // by clique
std::map<std::tuple<std::string, int, int>, std::deque<std::vector<char>>> letters;  // by clique, from, to
std::map<std::pair<std::string, int>, Reduction> reductions;                         // by clique and number
int slow_starts = 0, failure_at = 0, aborts = 0, next_id = 0;
ncclResult_t failure = ncclSuccess;

using Step = std::function<bool()>;  // tries; true: done
thread_local std::deque<Step> queued;
thread_local std::vector<Step> group;
thread_local bool in_group = false;
thread_local ncclComm_t comm_of_group = nullptr;
thread_local std::map<std::string, int> reductions_so_far;

ncclResult_t queue(ncclComm_t comm, Step step) {
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (comm->state != ncclSuccess) return ncclInvalidUsage;  // the last call has not ended
    if (failure_at > 0 && ++comm->exchanges == failure_at) return failure;
  }
  if (!in_group) {
    queued.push_back(std::move(step));
    return ncclSuccess;
  }
  comm_of_group = comm;
  group.push_back(std::move(step));
  return ncclSuccess;
}

}  // namespace

void reset() {
  const std::lock_guard<std::mutex> lock(mutex);
  present.clear();
  letters.clear();
  reductions.clear();
  slow_starts = failure_at = aborts = 0;
}
void set_slow_starts(int asks) { slow_starts = asks; }
void set_failure(int at, ncclResult_t result) {
  failure_at = at;
  failure = result;
}
int aborted() {
  const std::lock_guard<std::mutex> lock(mutex);
  return aborts;
}
int connecting() {
  const std::lock_guard<std::mutex> lock(mutex);
  int ranks = 0;
  for (const auto& clique : present) ranks += static_cast<int>(clique.second.size());
  return ranks;
}
bool is_idle() {
  while (!queued.empty() && queued.front()()) queued.pop_front();
  return queued.empty();
}
bool is_in_group() { return in_group; }

}  // namespace stoker::fake_nccl

using namespace stoker::fake_nccl;

namespace stoker::engine {
cudaStream_t current_stream(const c10::Device&) { return nullptr; }
bool is_current_stream_idle(const c10::Device&) { return is_idle(); }
void with_device(const c10::Device&, const std::function<void()>& work) { work(); }
}  // namespace stoker::engine

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::lock_guard<std::mutex> lock(mutex);
  std::memset(id, 0, sizeof *id);
  std::strcpy(id->internal, ("clique " + std::to_string(++next_id)).c_str());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (config->blocking != 0) return ncclInvalidArgument;  // the tests would hang where NCCL would
  const std::lock_guard<std::mutex> lock(mutex);
  auto made = std::make_unique<ncclComm>();
  made->clique = id.internal;
  made->rank = rank;
  made->size = size;
  made->slow_asks = slow_starts;
  made->state = ncclInProgress;
  present[made->clique].insert(rank);
  *comm = made.release();
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const std::lock_guard<std::mutex> lock(mutex);
  const bool all_here = static_cast<int>(present[comm->clique].size()) == comm->size;
  if (comm->state == ncclInProgress && all_here && comm->slow_asks-- <= 0) comm->state = ncclSuccess;
  *state = comm->state;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const std::lock_guard<std::mutex> lock(mutex);
  ++aborts;
  delete comm;
  queued.clear();
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  in_group = true;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  in_group = false;
  // Together: none of them waits for another one, but what comes later waits for all.
  queued.push_back([steps = std::exchange(group, {}), done = std::set<size_t>()]() mutable {
    for (size_t i = 0; i < steps.size(); ++i) {
      if (done.count(i) == 0 && steps[i]()) done.insert(i);
    }
    return done.size() == steps.size();
  });
  const std::lock_guard<std::mutex> lock(mutex);
  if (comm_of_group == nullptr || slow_starts == 0) return ncclSuccess;
  comm_of_group->state = ncclInProgress;  // it connects
  comm_of_group->slow_asks = slow_starts;
  comm_of_group = nullptr;
  return ncclInProgress;
}

ncclResult_t ncclSend(const void* bytes, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t) {
  if (type != ncclUint8 || !in_group) return ncclInvalidUsage;
  return queue(comm, [=, key = std::make_tuple(comm->clique, comm->rank, peer)] {
    const auto* const from = static_cast<const char*>(bytes);
    const std::lock_guard<std::mutex> lock(mutex);
    letters[key].emplace_back(from, from + count);
    return true;
  });
}

ncclResult_t ncclRecv(void* bytes, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t) {
  if (type != ncclUint8 || !in_group) return ncclInvalidUsage;
  return queue(comm, [=, key = std::make_tuple(comm->clique, peer, comm->rank)] {
    const std::lock_guard<std::mutex> lock(mutex);
    auto& waiting = letters[key];
    if (waiting.empty()) return false;
    if (waiting.front().size() != count) std::abort();
    std::memcpy(bytes, waiting.front().data(), count);
    waiting.pop_front();
    return true;
  });
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t) {
  if (type != ncclFloat32 || op != ncclSum || from != to) return ncclInvalidArgument;
  const auto key = std::make_pair(comm->clique, reductions_so_far[comm->clique]++);
  return queue(comm, [=, rank = comm->rank, size = comm->size] {
    auto* const numbers = static_cast<float*>(to);
    const std::lock_guard<std::mutex> lock(mutex);
    Reduction& reduction = reductions[key];
    reduction.sum.resize(count);
    if (reduction.ranks.insert(rank).second) {
      for (size_t i = 0; i < count; ++i) reduction.sum[i] += numbers[i];
    }
    if (static_cast<int>(reduction.ranks.size()) < size) return false;
    std::memcpy(numbers, reduction.sum.data(), count * sizeof(float));
    return true;
  });
}

const char* ncclGetErrorString(ncclResult_t) { return "unhandled system error"; }
const char* ncclGetLastError(ncclComm_t) { return "cable pulled"; }
