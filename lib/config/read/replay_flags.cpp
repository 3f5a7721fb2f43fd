// SPDX-License-Identifier: Apache-2.0
// The flags that are no options of the verbs that look at runs and compute parts of them again.
#include "config/read/verbs.h"
#include "config/table/parse_value.h"
#include "core/error.h"
#include "core/format.h"

namespace stoker::config {
namespace {

constexpr int64_t kMax = 1'000'000'000'000;

int64_t update_of(const std::string& text) {
  int64_t update = 0;
  if (read_integer(text, 1, kMax, update).empty()) return update;
  throw core::Error(core::ErrorKind::usage,
                    core::format("--update: {} is not accepted; {}", shown(text), range_text(1, kMax)),
                    "train replay --help and train blame --help list every flag");
}

int64_t stretches_of(const std::string& text) {
  int64_t stretches = 0;
  if (text == "all" || read_integer(text, 1, kMax, stretches).empty()) return stretches;
  throw core::Error(core::ErrorKind::usage,
                    core::format("--stretches: {} is not accepted; all, or {}", shown(text), range_text(1, kMax)),
                    "train verify --help lists every flag");
}

}  // namespace

std::vector<CommandFlag> make_replay_flags() {
  return {
      {"once",
       {},
       "",
       {},
       {"watch"},
       "Print where the runs stand now, and end.",
       [](CommandLine& line, const std::string&) { line.once = true; }},
      {"update",
       {},
       "N",
       {},
       {"replay", "blame"},
       "replay: the update to compute again, from 1. blame: the last one to look at (default: the end of a run that "
       "failed, "
       "else the largest spike of its reports).",
       [](CommandLine& line, const std::string& text) { line.update = update_of(text); }},
      {"stretches",
       {},
       "K",
       {},
       {"verify"},
       "Stretches between checkpoints to compute again, drawn by chance, or all (default: 3).",
       [](CommandLine& line, const std::string& text) { line.stretches = stretches_of(text); }},
      {"output",
       {"o"},
       "DIR",
       {},
       {"replay"},
       "Folder for pictures and figures (default: replay/update-N in the run directory).",
       [](CommandLine& line, const std::string& text) { line.output = text; }},
  };
}

}  // namespace stoker::config
