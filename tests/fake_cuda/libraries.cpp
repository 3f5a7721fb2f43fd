// SPDX-License-Identifier: Apache-2.0
// The calls of cuDNN, cuBLASLt and NCCL whose answers LibTorch or the program reads; generate.py writes all others.
// NCCL exchanges for real, through files in /dev/shm: its collectives are done once every rank has written its part.
#include <cublasLt.h>
#include <cudnn.h>
#include <nccl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "call.h"

#define API extern "C" [[gnu::visibility("default")]]
using fake_cuda::Fault;

#ifdef FAKE_CUDNN

API size_t cudnnGetVersion() { return CUDNN_VERSION; }
API const char* cudnnGetErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_SUCCESS                                   ? "CUDNN_STATUS_SUCCESS"
         : status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED ? "CUDNN_STATUS_ALLOC_FAILED"
                                                                          : "CUDNN_STATUS_EXECUTION_FAILED";
}
API cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t, cudnnBackendDescriptor_t* out) {
  *out = std::calloc(1, 64);
  return CUDNN_STATUS_SUCCESS;
}
API cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  std::free(descriptor);
  return CUDNN_STATUS_SUCCESS;
}
/// One engine is found for every operation; it has no options and no notes, and wants 1 MiB.
API cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t name,
                                           cudnnBackendAttributeType_t type, int64_t requested, int64_t* count,
                                           void* out) {
  int64_t there = 0;
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    there = name == CUDNN_ATTR_ENGINEHEUR_RESULTS || name == CUDNN_ATTR_ENGINECFG_ENGINE ? 1 : 0;
  } else if (type == CUDNN_TYPE_INT64) {
    there = 1;
    if (requested > 0 && out != nullptr) {
      const bool is_workspace = name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE;
      *static_cast<int64_t*>(out) = is_workspace ? 1 << 20 : name == CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT;
    }
  }
  if (count != nullptr) *count = there;
  return CUDNN_STATUS_SUCCESS;
}

#endif
#ifdef FAKE_CUBLASLT

API cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                                  cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                                  cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int,
                                                  cublasLtMatmulHeuristicResult_t* results, int* count) {
  if (fake_cuda::begin(__func__) != Fault::none) return CUBLAS_STATUS_EXECUTION_FAILED;
  results[0] = {};
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

#endif
#ifdef FAKE_NCCL

struct ncclComm {
  std::string prefix;  ///< prefix of its files
  int rank, size, device = 0;
  std::atomic<bool> aborted{false};
  std::vector<long> sent, received;  ///< messages to and from each
  long sums = 0;
};

namespace {

/// A message or a part of a sum. Kept for ever where it was aborted.
struct Exchange {
  ncclComm* comm;
  std::vector<std::string> awaited;  ///< files
  std::string written;
  const void* from;
  void* to;
  size_t bytes;
  ncclDataType_t type;
  bool adds;
};

bool is_there(void* argument) {
  const auto& exchange = *static_cast<Exchange*>(argument);
  if (exchange.comm->aborted) return true;
  for (const std::string& file : exchange.awaited) {
    if (::access(file.c_str(), R_OK) != 0) return false;
  }
  return true;
}

template <typename T>
void add(void* to, const std::string& part, bool first) {
  auto* const sum = static_cast<T*>(to);
  for (size_t i = 0; i < part.size() / sizeof(T); ++i) {
    T value;
    std::memcpy(&value, part.data() + i * sizeof(T), sizeof(T));
    sum[i] = first ? value : static_cast<T>(sum[i] + value);
  }
}

void work(void* argument) {
  auto* const exchange = static_cast<Exchange*>(argument);
  if (exchange->comm->aborted) return;
  if (!exchange->written.empty()) {
    const std::string unfinished = exchange->written + "+";
    std::ofstream(unfinished, std::ios::binary)
        .write(static_cast<const char*>(exchange->from), static_cast<std::streamsize>(exchange->bytes));
    std::rename(unfinished.c_str(), exchange->written.c_str());
  }
  bool first = true;
  for (const std::string& file : exchange->awaited) {
    std::ifstream input(file, std::ios::binary);
    const std::string part{std::istreambuf_iterator<char>(input), {}};
    if (!exchange->adds) {
      std::memcpy(exchange->to, part.data(), exchange->bytes);
      std::remove(file.c_str());
    } else if (exchange->type == ncclFloat32) {
      add<float>(exchange->to, part, first);
    } else if (exchange->type == ncclFloat64) {
      add<double>(exchange->to, part, first);
    } else if (exchange->type == ncclInt64) {
      add<int64_t>(exchange->to, part, first);
    } else {
      add<uint8_t>(exchange->to, part, first);
    }
    first = false;
  }
  delete exchange;
}

void queue(cudaStream_t stream, Exchange exchange) {
  fake_cuda_queue(stream, is_there, work, new Exchange(std::move(exchange)));
}

ncclResult_t result_of(Fault fault) {
  return fault == Fault::none ? ncclSuccess : fault == Fault::memory ? ncclSystemError : ncclUnhandledCudaError;
}
#define BEGIN() \
  if (const Fault fault = fake_cuda::begin(__func__); fault != Fault::none) return result_of(fault)

}  // namespace

API ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  BEGIN();
  std::random_device random;
  std::memset(id, 0, sizeof *id);
  std::snprintf(id->internal, sizeof id->internal, "/dev/shm/fake_nccl-%08x%08x", random(), random());
  return ncclSuccess;
}
API ncclResult_t ncclCommInitRankConfig(ncclComm_t* out, int size, ncclUniqueId id, int rank, ncclConfig_t*) {
  *out = nullptr;
  BEGIN();
  auto* const comm = new ncclComm{id.internal, rank, size};
  comm->sent.resize(static_cast<size_t>(size));
  comm->received.resize(static_cast<size_t>(size));
  *out = comm;
  return ncclInProgress;
}
API ncclResult_t ncclCommInitRank(ncclComm_t* out, int size, ncclUniqueId id, int rank) {
  return ncclCommInitRankConfig(out, size, id, rank, nullptr) == ncclInProgress ? ncclSuccess : ncclUnhandledCudaError;
}
API ncclResult_t
ncclCommAbort(ncclComm_t comm) {  // its files of the last sums stay: another rank may not have read them
  comm->aborted = true;
  return ncclSuccess;
}
API ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* state) {
  *state = ncclSuccess;
  BEGIN();
  return ncclSuccess;
}
API ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t, int peer, ncclComm_t comm,
                          cudaStream_t stream) {
  BEGIN();
  const long number = comm->sent[static_cast<size_t>(peer)]++;
  const std::string file =
      comm->prefix + "-" + std::to_string(comm->rank) + "to" + std::to_string(peer) + "." + std::to_string(number);
  queue(stream, {comm, {}, file, from, nullptr, count, ncclUint8, false});
  return ncclSuccess;
}
API ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t, int peer, ncclComm_t comm, cudaStream_t stream) {
  BEGIN();
  const long number = comm->received[static_cast<size_t>(peer)]++;
  const std::string file =
      comm->prefix + "-" + std::to_string(peer) + "to" + std::to_string(comm->rank) + "." + std::to_string(number);
  queue(stream, {comm, {file}, "", nullptr, to, count, ncclUint8, false});
  return ncclSuccess;
}
API ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t,
                               ncclComm_t comm, cudaStream_t stream) {
  BEGIN();
  const size_t width = type == ncclFloat32 || type == ncclInt32 ? 4 : type == ncclFloat64 || type == ncclInt64 ? 8 : 1;
  const auto file_of = [comm](long sum, int rank) {
    return comm->prefix + "-sum" + std::to_string(sum) + "." + std::to_string(rank);
  };
  const long sum = comm->sums++;
  if (sum > 1) std::remove(file_of(sum - 2, comm->rank).c_str());  // all have read it: they have written the next one
  std::vector<std::string> parts;
  for (int rank = 0; rank < comm->size; ++rank) parts.push_back(file_of(sum, rank));
  queue(stream, {comm, {}, parts[static_cast<size_t>(comm->rank)], from, nullptr, count * width, type, false});
  queue(stream, {comm, parts, "", nullptr, to, count * width, type, true});
  return ncclSuccess;
}
API const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclSuccess       ? "no error"
         : result == ncclSystemError ? "unhandled system error"
                                     : "unhandled cuda error";
}
API const char* ncclGetLastError(ncclComm_t) { return ""; }

#endif
