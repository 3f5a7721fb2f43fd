// SPDX-License-Identifier: Apache-2.0
// What ranks that are processes tell each other besides tensors: that they are here, what they do, and why they cannot
// go on. Ranks of one machine tell it in a private folder, in which c10d's FileStore lies as well; those of several
// machines in c10d's TCPStore (c10d/join.cpp). The file of a FileStore only grows, and a reader of it waits for ever
// where a writer was killed halfway: it holds the addresses of Gloo, and nothing else.
#pragma once

#include <functional>
#include <string>

#include "core/error.h"
#include "engine/group/lost_rank.h"

namespace stoker::engine {

inline constexpr double kPatience = 3;  // seconds that a process waits for another without a word to the user

/// Of one rank. Any thread.
class Meeting {
 public:
  virtual ~Meeting() = default;
  virtual void give_sign(const SignOfLife& sign) = 0;
  virtual SignOfLife sign_of(int rank) = 0;
  /// Why the ranks cannot go on, as the first of them has said it; empty while they can.
  virtual std::string cause() = 0;
  /// Gives them a cause, unless there is one; returns what stands there.
  virtual std::string say(const std::string& cause) = 0;
  /// Whether the process of a rank is gone that had come and did not say that it ends; false where nobody can tell.
  virtual bool is_dead(int /*rank*/) { return false; }
  /// Why none of these can be known or said any more; empty: they can.
  virtual std::string trouble() { return ""; }
};

/// For a second process that says it is the same rank.
core::Error second_of_rank(int rank, int size, int64_t process);

/// The folder `name` of a job below one of the user's own in TMPDIR, which nobody else can enter. Each rank holds a
/// lock in it, which the kernel takes away with the process. Who comes removes all folders whose processes are gone.
/// Where an earlier job of the same name is not gone as a whole (one of its ranks has ended, another has not), it waits
/// for that; so that only ranks that are there together meet.
class MeetingFolder : public Meeting {
 public:
  /// `rank` = `size` is the process that starts the ranks. Throws Error{config} when that rank is here already,
  /// {peer_lost} when an earlier job does not end within `seconds`, {permission} when others may enter the folder;
  /// core::StopRequested.
  MeetingFolder(const std::string& name, int rank, int size, double seconds);
  ~MeetingFolder() override;
  MeetingFolder(const MeetingFolder&) = delete;
  MeetingFolder& operator=(const MeetingFolder&) = delete;

  const std::string& path() const { return path_; }
  void give_sign(const SignOfLife& sign) override;
  SignOfLife sign_of(int rank) override;
  std::string cause() override;
  std::string say(const std::string& cause) override;
  bool is_dead(int rank) override;

 private:
  bool enter();
  void leave() noexcept;

  const std::string path_;
  const int rank_, size_;
  int ranks_ = -1;  ///< the file in which each rank has a place: its lock, and its newest sign
};

}  // namespace stoker::engine
