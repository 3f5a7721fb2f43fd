// SPDX-License-Identifier: Apache-2.0
// The ranks of a run as processes, joined through c10d: its store to meet at, Gloo to send tensors of the CPU.
// c10d has no authentication: who reaches the port of the store, or those of Gloo, can disturb the run.
#pragma once

#include <memory>
#include <string>

#include "engine/group/group.h"

namespace stoker::engine {

/// Where ranks meet: names and values, held by one process.
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
  std::string host = "127.0.0.1";    ///< of the meeting point
  int port = 0;                      ///< of the meeting point
  std::string own_address;           ///< where this rank listens for others; empty: the address of its host's name
  bool hosts_meeting_point = false;  ///< this rank makes it; else it is there, or soon will be
  std::string attempt;               ///< tells runs apart that meet at one point, one after the other
  double timeout_seconds = 60;       ///< that a rank waits for another
};

/// False when the program was built without c10d and Gloo; then the others throw Error{unavailable}.
bool can_join_processes();

/// On the loopback address, at a port that the kernel chooses. Throws Error{os}.
std::unique_ptr<MeetingPoint> open_meeting_point();

/// Meets the other ranks; every one makes this call. Throws Error{peer_lost} when they do not come in time.
std::unique_ptr<Group> join_processes(const Joining& joining);

}  // namespace stoker::engine
