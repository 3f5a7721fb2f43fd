// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a run meet: one process keeps names and values for all of them. It listens on one address and
// nowhere else, which c10d's TCPStore cannot do on every release. No authentication: who reaches the port can change
// what stands there.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/group/meet/wire.h"

namespace stoker::engine {

inline constexpr const char* kCauseKey = "cause";  // why the ranks cannot go on, once there is a reason
std::string ended_key(int rank);                   // there once the rank has ended in good order

class MeetingServer {
 public:
  struct Settings {
    std::string address = "127.0.0.1";
    int port = 0;     ///< 0: the kernel chooses
    std::string run;  ///< those who come for another are turned away
    bool names_lost_ranks =
        false;  ///< a rank that is gone without a word becomes the cause; else somebody else sees to it
  };
  /// Throws core::Error{os} when it cannot listen there.
  explicit MeetingServer(Settings settings);
  ~MeetingServer();
  MeetingServer(const MeetingServer&) = delete;
  MeetingServer& operator=(const MeetingServer&) = delete;

  int port() const { return port_; }
  // As those who come see it; any thread.
  std::optional<std::string> find(const std::string& key) const;
  int ranks_here() const { return ranks_here_; }  ///< that have joined and are still connected
  /// Leaves the first value; returns what stands there.
  std::string set_once(const std::string& key, const std::string& value);

 private:
  struct Visitor;
  void serve();
  void serve_visitor(Visitor& visitor);
  std::string answer_to(Visitor& visitor, const std::string& question);
  void say_good_bye(const Visitor& visitor);
  std::string compare_set(const std::string& key, const std::string& expected, const std::string& value);

  const Settings settings_;
  Socket listening_, wake_;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> values_;
  std::atomic<int> ranks_here_{0};
  std::thread thread_;
};

}  // namespace stoker::engine
