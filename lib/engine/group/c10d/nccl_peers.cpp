// SPDX-License-Identifier: Apache-2.0
// Bytes between GPUs through NCCL itself, one communicator for the run. Not through c10d's ProcessGroupNCCL: its
// constructors and the calls that group several operations differ from release to release, it has no call that sends
// and receives at once, and its wait cannot be broken off from here. Everything else that ranks exchange goes through
// the peers on the CPU.
//
// The communicator does not block: what would wait for another rank returns, and is polled, so
// that the loss of a rank or its error, of which the peers hear, ends the wait. ncclCommAbort() then ends the kernels
// that wait on the device.
#include <nccl.h>

#include <cstring>
#include <exception>

#include "core/error.h"
#include "core/format.h"
#include "engine/group/c10d/cuda_stream.h"
#include "engine/group/c10d/device_peers.h"

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 14, 0)
#error "NCCL 2.14 or newer is needed: ncclConfig_t with blocking"
#endif

namespace stoker::engine {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;

/// Aborts at its end. By then every rank has seen its last sum complete, or the run has failed: nothing that another
/// rank still reads is lost.
class Communicator {
 public:
  Communicator() = default;
  ~Communicator() { abort(); }
  Communicator& operator=(Communicator&&) = delete;  // not copied, not moved

  void abort() noexcept {
    if (comm != nullptr) ncclCommAbort(comm);
    comm = nullptr;
  }
  ncclComm_t comm = nullptr;
};

class NcclPeers : public DevicePeers {
 public:
  NcclPeers(WatchedPeers& peers, const at::Device& device) : peers_(peers), device_(device) {
    ncclUniqueId id{};
    std::string bytes;
    if (peers.rank() == 0) {
      expect(ncclGetUniqueId(&id));
      bytes.assign(id.internal, sizeof id.internal);
    }
    bytes = from_root_of_peers(peers, bytes);
    if (bytes.size() != sizeof id.internal) throw Error(ErrorKind::bug, "the id of NCCL has another size on rank 0");
    std::memcpy(id.internal, bytes.data(), sizeof id.internal);
    try_to([&] {
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      settle(ncclCommInitRankConfig(&communicator_.comm, size(), id, rank(), &config));
    });
  }

  int rank() const override { return peers_.rank(); }
  int size() const override { return peers_.size(); }

  void exchange(int peer, const void* out, size_t out_bytes, void* in, size_t in_bytes) override {
    try_to([&] {
      const cudaStream_t stream = current_stream(device_);
      begin_group();
      ncclResult_t result = ncclSuccess;
      if (out_bytes > 0) result = ncclSend(out, out_bytes, ncclUint8, peer, communicator_.comm, stream);
      if (in_bytes > 0 && is_fine(result)) {
        result = ncclRecv(in, in_bytes, ncclUint8, peer, communicator_.comm, stream);
      }
      const ncclResult_t ended = ncclGroupEnd();  // also after an error: it would take all that follows
      expect(result);
      settle(ended);
    });
    bytes_sent_ += static_cast<int64_t>(out_bytes);
  }

  void all_reduce(const at::Tensor& tensor) override {
    const ncclDataType_t type = type_of(tensor.scalar_type());
    try_to([&] {
      void* const numbers = tensor.data_ptr();
      settle(ncclAllReduce(numbers, numbers, static_cast<size_t>(tensor.numel()), type, ncclSum, communicator_.comm,
                           current_stream(device_)));
    });
    bytes_sent_ += static_cast<int64_t>(tensor.nbytes()) / size() * 2 * (size() - 1);
  }

  void wait() override {
    try_to([&] { peers_.wait_for([&] { return is_settled() && is_current_stream_idle(device_); }); });
  }

  int64_t bytes_sent() const override { return bytes_sent_; }

 private:
  static bool is_fine(ncclResult_t result) { return result == ncclSuccess || result == ncclInProgress; }

  static ncclDataType_t type_of(at::ScalarType type) {
    switch (type) {
      case at::kFloat: return ncclFloat32;
      case at::kDouble: return ncclFloat64;
      case at::kHalf: return ncclFloat16;
      case at::kBFloat16: return ncclBfloat16;
      case at::kLong: return ncclInt64;
      case at::kInt: return ncclInt32;
      case at::kChar: return ncclInt8;
      case at::kByte: return ncclUint8;
      default: throw Error(ErrorKind::bug, format("NCCL adds no tensors of type {}", at::toString(type)));
    }
  }

  /// Whatever goes wrong, nothing is left behind that waits on the device.
  template <typename Work>
  void try_to(const Work& work) {
    try {
      peers_.throw_if_broken();
      if (has_failed_) throw Error(ErrorKind::os, "NCCL has failed before");
      with_device(device_, work);
    } catch (...) {
      has_failed_ = true;
      communicator_.abort();
      throw;
    }
  }

  void begin_group() { expect(ncclGroupStart()); }

  /// The first call towards a rank connects to it, which takes that rank, too.
  void settle(ncclResult_t result) {
    expect(result);
    if (result == ncclInProgress) peers_.wait_for([&] { return is_settled(); });
  }

  /// Whether NCCL has finished its calls, apart from what is queued on the device.
  bool is_settled() {
    ncclResult_t state = ncclSuccess;
    expect(ncclCommGetAsyncError(communicator_.comm, &state));
    expect(state);
    return state == ncclSuccess;
  }

  /// A rank that is gone is an error of NCCL, too, and what became of it may be on its way.
  void expect(ncclResult_t result) {
    if (is_fine(result)) return;
    std::string what = ncclGetErrorString(result);
    const char* const more = communicator_.comm == nullptr ? nullptr : ncclGetLastError(communicator_.comm);
    if (more != nullptr && *more != '\0') what += format(" ({})", more);
    if (result == ncclRemoteError || result == ncclSystemError || result == ncclInternalError) {
      peers_.wait_for_cause();
    }
    throw Error(
        ErrorKind::os, format("the GPUs cannot exchange, NCCL reports: {}", what),
        "NCCL_DEBUG=INFO in the environment prints details; NCCL_P2P_DISABLE=1 avoids direct access between cards");
  }

  WatchedPeers& peers_;
  const at::Device device_;
  Communicator communicator_;
  bool has_failed_ = false;
  int64_t bytes_sent_ = 0;
};

}  // namespace

std::unique_ptr<DevicePeers> connect_devices(WatchedPeers& peers, const at::Device& device) {
  return std::make_unique<NcclPeers>(peers, device);
}

}  // namespace stoker::engine
