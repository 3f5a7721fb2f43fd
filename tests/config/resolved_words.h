// SPDX-License-Identifier: Apache-2.0
// A command line as a test writes it, resolved from facts.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "config/resolution.h"
#include "tests/config/command_words.h"

namespace stoker::fixtures {

inline config::Resolution resolved(const std::vector<std::string>& words, config::Facts facts) {
  const auto given = parsed(words);
  facts.run_name = config::run_name_of(given->flags);
  return config::resolve(given->options, facts);
}

inline config::Facts facts_of(const core::MachineFacts& machine) {
  config::Facts facts;
  facts.machine = machine;
  return facts;
}

inline config::Facts facts_of(const core::MachineFacts& machine, const config::DataFacts& data) {
  config::Facts facts = facts_of(machine);
  facts.data = data;
  return facts;
}

/// Why an automatic option has its value; "" when it was given, is a default, or is only assumed.
inline std::string reason_of(const config::Resolution& resolution, const std::string& option) {
  for (const config::Choice& choice : resolution.choices) {
    if (choice.option == option) return choice.reason;
  }
  return "";
}

inline bool is_assumed(const config::Resolution& resolution, const std::string& option) {
  return std::count(resolution.assumed.begin(), resolution.assumed.end(), option) > 0;
}

}  // namespace stoker::fixtures
