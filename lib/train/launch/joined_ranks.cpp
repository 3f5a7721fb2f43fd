// SPDX-License-Identifier: Apache-2.0
#include "train/launch/joined_ranks.h"

#include <unistd.h>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/text/json.h"
#include "engine/group/c10d/join.h"

namespace stoker::train {
namespace {

using core::format;

engine::Joining joining_of(const RankLocation& place, double timeout_seconds, int stopped_code) {
  engine::Joining joining;
  joining.rank = place.rank;
  joining.size = place.size;
  joining.job = place.job;
  joining.is_one_machine = place.is_one_machine();
  joining.host = place.host;
  joining.port = place.port;
  if (!place.has_store) joining.listen = place.listen;
  joining.timeout_seconds = timeout_seconds;
  if (place.starter == "train") joining.meeting_seconds = timeout_seconds;  // all are started at the same time
  joining.when_overdue = [rank = place.rank, has_starter = place.starter == "train",
                          stopped_code](const std::string& cause) {
    if (!has_starter && !engine::stop_signal_in(cause).empty()) {  // else the starter handles the signal
      core::flush_log();
      ::_exit(stopped_code);
    }
    core::log_line(rank == 0 ? core::LogLevel::error : core::LogLevel::debug,
                   format("{}; this rank was busy and did not end by itself", cause));
    core::flush_log();
    ::_exit(core::exit_code(core::ErrorKind::peer_lost));
  };
  return joining;
}

}  // namespace

std::vector<std::string> notes_of(const RankLocation& place, int64_t restarts) {
  std::vector<std::string> notes;
  if (!place.is_one_machine()) {
    const std::string who =
        place.has_store ? format("{} keeps the store in which ranks meet at {}", place.starter, place.host)
        : engine::can_listen_at_one_address()
            ? format("rank 0 listens at {}", place.listen)
            : "rank 0 listens at every address of its machine (this LibTorch supports no other way)";
    notes.push_back(format(
        "{}, port {}, and ranks listen for each other at ports that the kernel chooses: without authentication, so "
        "whoever reaches one of them can disturb the run",
        who, place.port));
  }
  if (place.attempt > 0) {
    notes.push_back(place.starter == "train" ? format("restart {} of {} after a lost rank", place.attempt, restarts)
                                             : format("restart {} by {}", place.attempt, place.starter));
  }
  return notes;
}

JoinedRanks::JoinedRanks(const RankLocation& place, double timeout_seconds, int stopped_code)
    : place_(place), group_(engine::join_processes(joining_of(place, timeout_seconds, stopped_code))) {}

std::string JoinedRanks::from_root(const std::function<std::string()>& choose) const {
  return group().from_root(is_root() ? choose() : "");
}

void JoinedRanks::refuse_differences(const std::vector<std::pair<std::string, std::string>>& values) const {
  core::Json own = core::Json::object();
  for (const auto& [name, value] : values) own[name] = core::printable(value);
  const std::vector<std::string> all = group().gather(core::json_line(own));
  std::string differences;
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    const core::Json root = core::parse_json(all[0], "rank 0"), other = core::parse_json(all[rank], "another rank");
    core::Json names = root;
    names.update(other);
    const auto value_of = [](const core::Json& of_rank, const std::string& name) {
      return of_rank.contains(name) ? of_rank[name].get<std::string>() : "(not set)";
    };
    for (const auto& [name, value] : names.items()) {
      const std::string text = value_of(other, name), wanted = value_of(root, name);
      if (text != wanted) differences += format("\n  {}: rank {} has {}, rank 0 {}", name, rank, text, wanted);
    }
  }
  if (differences.empty()) return;
  try {
    group().gather("");  // rank 0 answers once all have come here
  } catch (const core::Error&) {
    // A rank is lost meanwhile. The difference remains.
  }
  throw core::Error(core::ErrorKind::config, "the ranks would not compute the same:" + differences,
                    "start all of them with the same program, options and data");
}

}  // namespace stoker::train
