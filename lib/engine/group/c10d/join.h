// SPDX-License-Identifier: Apache-2.0
// The ranks of a run as processes: they meet at a meeting point of this program (group/meet), and Gloo, from LibTorch's
// c10d, sends tensors of the CPU between them.
// Neither has authentication: who reaches the port of the meeting point, or those of Gloo, can disturb the run.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/group/group.h"

namespace stoker::engine {

/// Where ranks meet, held by the process that has started them.
class MeetingPoint {
 public:
  virtual ~MeetingPoint() = default;
  virtual int port() const = 0;
  /// Why the ranks cannot go on, as the first of them has said it; empty while they can.
  virtual std::string cause() const = 0;
  /// Gives them a cause, unless there is one.
  virtual void say(const std::string& cause) = 0;
};

struct Joining {
  int rank = 0, size = 1;
  std::string host = "127.0.0.1";  ///< of the meeting point
  int port = 0;                    ///< of the meeting point
  /// At host and port is the TCPStore of a starter, in which rank 0 writes where its meeting point is.
  bool asks_starter = false;
  bool hosts_meeting_point = false;  ///< this rank makes it; else it is there, or soon will be
  std::string listen = "127.0.0.1";  ///< the address at which it does, and no other
  std::string run;                   ///< tells runs, and attempts of one, apart
  /// One machine: ranks listen for each other on the loopback address, else each on its address towards the meeting
  /// point.
  bool is_one_machine = true;
  double meeting_seconds = 300;  ///< that ranks may come one after the other
  double timeout_seconds = 60;   ///< see LostRankFinder
  /// Called, from another thread, when this rank has not ended some seconds after another was lost. May be empty.
  std::function<void(const std::string& cause)> when_overdue;
};

/// False when the program was built without c10d and Gloo; then the others throw Error{unavailable}.
bool can_join_processes();

/// On the loopback address, at a port that the kernel chooses, for ranks with this `run`. Throws Error{os}.
std::unique_ptr<MeetingPoint> open_meeting_point(const std::string& run = "");

/// Meets the other ranks; every one makes this call. Throws Error{peer_lost} when they do not come in time, {os} when
/// this one should host the meeting point and cannot, {config}; core::StopRequested.
std::unique_ptr<Group> join_processes(const Joining& joining);

}  // namespace stoker::engine
