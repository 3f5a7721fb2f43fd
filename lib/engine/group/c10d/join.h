// SPDX-License-Identifier: Apache-2.0
// The ranks of a run as processes: they meet (group/rendezvous.h), and Gloo, from LibTorch's c10d, sends tensors of the
// CPU between them. Neither c10d's TCPStore, where ranks of several machines meet, nor Gloo has authentication: who
// reaches their ports can do what a rank can, and more. See docs/how-to/several-processes.md.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/group/group.h"

namespace stoker::engine {

struct Joining {
  int rank = 0, size = 1;
  std::string job;  ///< distinguishes jobs, and attempts of one: all ranks have the same
  bool is_one_machine = true;
  // For several machines:
  std::string host;              ///< where the ranks meet
  int port = 0;                  ///< there
  std::string listen;            ///< where rank 0 listens; empty: a starter keeps the TCPStore at host and port
  double meeting_seconds = 300;  ///< that ranks may come one after the other
  double timeout_seconds = 60;   ///< see LostRankFinder
  /// Called, from another thread, when this rank has not ended some seconds after another was lost. May be empty.
  std::function<void(const std::string& cause)> when_overdue;
};

/// False when the program was built without c10d and Gloo; then the others throw Error{unavailable}.
bool can_join_processes();

/// Whether rank 0 listens for ranks on other machines at one address alone, and not at all that its machine has.
bool can_listen_at_one_address();

/// Meets the other ranks; every one makes this call. Throws Error{peer_lost} when they do not come in time, {os} when
/// rank 0 cannot listen, {config}, for one when another process is this rank; core::StopRequested.
std::unique_ptr<Group> join_processes(const Joining& joining);

}  // namespace stoker::engine
