// SPDX-License-Identifier: Apache-2.0
// A rank's way to the meeting point of its run: names and values that all ranks see.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "engine/group/meet/wire.h"

namespace stoker::engine {

/// Any thread; calls wait for each other. Every call throws core::Error{peer_lost} when no answer comes in time, and
/// from then on at once.
class MeetingClient {
 public:
  struct Settings {
    std::string host;
    int port = 0;
    std::string run;  ///< what MeetingServer::Settings says
    int rank = 0;
    double meeting_seconds = 300;  ///< that the meeting point may come later than this rank
    double answer_seconds = 10;
  };
  /// Throws core::Error{peer_lost} when nobody is there, {config} when it is the meeting point of another run;
  /// core::StopRequested.
  explicit MeetingClient(const Settings& settings);

  void set(const std::string& key, const std::string& value);
  std::optional<std::string> find(const std::string& key);
  std::string compare_set(const std::string& key, const std::string& expected, const std::string& value);
  int64_t add(const std::string& key, int64_t number);
  bool erase(const std::string& key);
  int64_t count();

  /// The address of this machine on the way there, in figures: others that reach the meeting point reach it, too.
  const std::string& own_address() const { return own_address_; }

 private:
  std::string answer_to(const std::string& question);

  const std::string place_;  ///< for messages
  std::mutex mutex_;
  Socket socket_;
  std::string received_;
  bool is_broken_ = false;
  std::string own_address_;
};

}  // namespace stoker::engine
