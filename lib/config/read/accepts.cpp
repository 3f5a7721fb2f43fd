// SPDX-License-Identifier: Apache-2.0
// Which verb takes which flag and which option.
#include <algorithm>

#include "config/read/verbs.h"

namespace stoker::config {
namespace {

/// What may be another one than in the run, because no bit depends on it; and device and threads, for those who have no
/// such device.
bool is_free_in_replay(const Row& row) {
  const std::vector<std::string> names = {"data-dir", "device", "threads", "num-workers", "plan-check"};
  return row.group == "log" || std::find(names.begin(), names.end(), row.name) != names.end();
}

}  // namespace

bool accepts(const CommandFlag& flag, const std::string& verb) {
  return std::find(flag.verbs.begin(), flag.verbs.end(), verb) != flag.verbs.end();
}

bool accepts(const Row& row, const std::string& verb) {
  if (verb == "plan") return row.name != "devices";  // it has a flag of this name, for several numbers
  if (verb.empty() || verb == "bench") return true;
  if (verb == "check" || verb == "preview") return row.group != "run";  // they have no run
  if (verb == "audit") return row.group == "data" || row.name == "task" || accepts(row, "eval") || accepts(row, "pack");
  if (verb == "replay") return row.name == "override-resume" || is_free_in_replay(row);
  if (verb == "verify" || verb == "diff" || verb == "blame") return is_free_in_replay(row);
  return std::find(row.verbs.begin(), row.verbs.end(), verb) != row.verbs.end();
}

bool accepts(const Table& table, const Shorthand& shorthand, const std::string& verb) {
  const bool trains = verb.empty() || verb == "bench" || verb == "plan" || verb == "check" || verb == "preview";
  if (shorthand.takes_count) return trains;
  for (const auto& choice : shorthand.choices) {
    if (choice.second.empty() && !trains) return false;
    for (const auto& value : choice.second) {
      const Row* row = table.find(value.first);
      if (!row || !accepts(*row, verb)) return false;
    }
  }
  return true;
}

}  // namespace stoker::config
