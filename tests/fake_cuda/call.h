// SPDX-License-Identifier: Apache-2.0
// The start of every call of the fake CUDA: it is counted, its name is written down, and it fails
// where the environment requests that. libcudart has it; the others ask it.
//
//   STOKER_FAKE_CUDA_TRACE=FILE   a line for each call: its number, its name
//   STOKER_FAKE_CUDA_FAULT=K:KIND the K-th call fails: memory (that call alone), illegal or lost (the next ones, too),
//                                 hang (it does not return)
#pragma once

extern "C" {
/// The fault of this call.
[[gnu::visibility("default")]] int fake_cuda_call(const char* name);
/// Work in the order of a stream, done once another process has made it ready.
[[gnu::visibility("default")]] void fake_cuda_queue(void* stream, bool (*is_ready)(void*), void (*work)(void*),
                                                    void* argument);
}

namespace fake_cuda {

enum class Fault { none, memory, illegal, lost };

inline Fault begin(const char* name) { return static_cast<Fault>(fake_cuda_call(name)); }

}  // namespace fake_cuda
