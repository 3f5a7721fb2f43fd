// SPDX-License-Identifier: Apache-2.0
// Messages between ranks besides tensors: their presence, their state, and the cause of a failure. They cannot
// continue. Ranks of one machine write it to a private folder, in which c10d's FileStore lies as well; those of several
// machines in c10d's TCPStore (c10d/join.cpp). The file of a FileStore only grows, and a reader of it waits for ever
// where a writer was killed halfway: it holds the addresses of Gloo, and nothing else.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/error.h"

namespace stoker::engine {

/// Polls what is `missing` ("rank 3 of 4"), until nothing is; logs it after some seconds, unless `speaks` is false by
/// then. Throws Error{peer_lost} after `seconds`; core::StopRequested.
void wait_until_present(const std::function<std::string()>& missing, double seconds, const std::string& hint,
                        const bool& speaks = true);

/// The state of a rank, as it publishes it.
struct Heartbeat {
  enum class Doing : int64_t {
    waits,      ///< for others
    computes,   ///< something that takes all ranks about as long: an update
    long_work,  ///< something that may take any time: start-up, a checkpoint
    ended,      ///< normally, or after it has published why not
  };
  int64_t number = 0;  ///< grows with each heartbeat; 0: the rank has not come yet
  Doing doing = Doing::long_work;
  int64_t process = 0;

  std::string text() const;
  static Heartbeat read(const std::string& text);  ///< default for what is none
  bool is_present() const { return number > 0; }
  bool has_ended() const { return doing == Doing::ended; }
};

/// Finds the rank that the others wait for without end: one wait of one rank after the other. It reads no clock and
/// sends nothing: numbers in, a verdict out. Times are seconds of a clock that stands still while this process does.
class LostRankFinder {
 public:
  LostRankFinder(int rank, int size, double timeout_seconds);

  /// A new wait, for whichever rank.
  void begin_wait(double now);
  /// The wait lasts so long that it wants to look at the others.
  bool needs_heartbeats(double now) const { return now - begin_ >= timeout_ / 4; }
  /// `heartbeats` [ranks]: the newest of each. Returns why no more can be waited; empty: it is still worth it.
  ///  - A rank without a new heartbeat for half of the timeout is lost, whatever it was doing.
  ///  - A rank that sends heartbeats is lost when all others have waited for it for the timeout and none does long
  ///  work.
  ///  - When all wait, for as long twice, messages are lost between them.
  std::string look(double now, const std::vector<Heartbeat>& heartbeats);

  double heartbeat_interval() const;

 private:
  const int rank_;
  const double timeout_;
  double begin_ = 0;         ///< time at which the wait began
  double without_long_ = 0;  ///< since when no rank does long work
  bool has_looked_ = false;
  std::vector<Heartbeat> last_;
  std::vector<double> last_at_;
};

/// The rendezvous of one rank. Any thread.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  virtual void send_heartbeat(const Heartbeat& heartbeat) = 0;
  virtual Heartbeat heartbeat_of(int rank) = 0;
  /// Why the ranks cannot continue, as the first of them has published it; empty while they can.
  virtual std::string cause() = 0;
  /// Publishes a cause, unless there is one; returns the one that stands.
  virtual std::string publish_cause(const std::string& cause) = 0;
  /// Whether the process of a rank is gone that had come and did not announce its end; false where that cannot be found
  /// out.
  virtual bool is_dead(int /*rank*/) { return false; }
  /// Why none of these can be read or published any more; empty: they can.
  virtual std::string failure() { return ""; }
};

/// For a second process that claims to be the same rank.
core::Error duplicate_rank_error(int rank, int size, int64_t process);

/// The folder `name` of a job below one of the user's own in TMPDIR, which no other user can enter. Each rank holds a
/// lock in it, which the kernel takes away with the process. Who comes removes all folders whose processes are gone.
/// Where an earlier job of the same name is not gone as a whole (one of its ranks has ended, another has not), it waits
/// for that; so that only ranks that are there together meet.
class RendezvousFolder : public Rendezvous {
 public:
  /// `rank` = `size` is the process that starts the ranks. Throws Error{config} when that rank is here already,
  /// {peer_lost} when an earlier job does not end within `seconds`, {permission} when others may enter the folder;
  /// core::StopRequested.
  RendezvousFolder(const std::string& name, int rank, int size, double seconds);
  ~RendezvousFolder() override;
  RendezvousFolder& operator=(RendezvousFolder&&) = delete;  // not copied, not moved

  const std::string& path() const { return path_; }
  void send_heartbeat(const Heartbeat& heartbeat) override;
  Heartbeat heartbeat_of(int rank) override;
  std::string cause() override;
  std::string publish_cause(const std::string& cause) override;
  bool is_dead(int rank) override;

 private:
  bool enter();
  void leave() noexcept;

  const std::string path_;
  const int rank_, size_;
  int ranks_ = -1;  ///< the file in which each rank has a place: its lock, and its newest heartbeat
};

}  // namespace stoker::engine
