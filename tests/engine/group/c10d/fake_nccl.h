// SPDX-License-Identifier: Apache-2.0
// A double of NCCL for tests without a GPU: ranks are threads, memory of a device is that of the host. It is as lazy as
// NCCL may be: nothing is complete when a call returns, only once a call queries it.
#pragma once

#include <nccl.h>

namespace stoker::fake_nccl {

/// From here on: no ranks, no failures, no counts.
void reset();
/// The first `asks` queries of the state of a communicator that is being made, or has been given an exchange, get "in
/// progress".
void set_slow_starts(int asks);
/// The `at`-th exchange of every communicator fails with `result`; 0: none.
void set_failure(int at, ncclResult_t result);
/// How many communicators were aborted.
int aborted();
/// How many ranks have begun to connect.
int connecting();
/// Whether all that this thread has queued is done; moves what can be moved.
bool is_idle();
/// Whether a group was begun on this thread and not ended.
bool is_in_group();

}  // namespace stoker::fake_nccl
