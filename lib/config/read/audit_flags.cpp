// SPDX-License-Identifier: Apache-2.0
// The flags of `train audit` that are no options.
#include "config/read/verbs.h"
#include "config/table/parse_value.h"
#include "core/error.h"
#include "core/format.h"

namespace stoker::config {
namespace {

int64_t suspects_of(const std::string& text) {
  constexpr int64_t kMaxSuspects = 1'000'000'000;
  int64_t suspects = 0;
  if (read_integer(text, 1, kMaxSuspects, suspects).empty()) return suspects;
  throw core::Error(core::ErrorKind::usage,
                    core::format("--suspects: {} is not accepted; {}", shown(text), range_text(1, kMaxSuspects)),
                    "train audit --help lists every flag");
}

}  // namespace

std::vector<CommandFlag> make_audit_flags() {
  const std::vector<std::string> audit = {"audit"};
  return {
      {"run",
       {},
       "RUN_OR_CHECKPOINT",
       {},
       audit,
       "Ask the networks of this run which labels look wrong; its data set and options hold where none are given.",
       [](CommandLine& line, const std::string& text) { line.checkpoint = text; }},
      {"suspects",
       {},
       "N",
       {},
       audit,
       "With --run: labels of each split that are listed (default: 200).",
       [](CommandLine& line, const std::string& text) { line.suspects = suspects_of(text); }},
      {"output",
       {"o"},
       "FILE",
       {},
       audit,
       "Write a page with pictures of all that was found; - is standard output, instead of the text.",
       [](CommandLine& line, const std::string& text) { line.output = text; }},
  };
}

}  // namespace stoker::config
