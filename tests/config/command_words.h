// SPDX-License-Identifier: Apache-2.0
// A command line as a test writes it, and what became of it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/config.h"
#include "core/error.h"

namespace stoker::fixtures {

/// What a failed call said; kind bug and an empty message when it did not fail.
struct Failure {
  core::ErrorKind kind = core::ErrorKind::bug;
  std::string message;
  std::string hint;
  bool says(const std::string& words) const { return message.find(words) != std::string::npos; }
};

template <typename Call>
Failure failure_of(Call call) {
  try {
    call();
  } catch (const core::Error& error) {
    return {error.kind(), error.what(), error.hint()};
  }
  return {};
}

/// Parses `train <words>`.
inline void parse_words(const std::vector<std::string>& words, config::Configuration& out) {
  std::vector<const char*> argv = {"train"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  config::parse_command_line(static_cast<int>(argv.size()), argv.data(), out);
}

inline std::unique_ptr<config::Configuration> parsed(const std::vector<std::string>& words) {
  auto configuration = std::make_unique<config::Configuration>();
  parse_words(words, *configuration);
  return configuration;
}

inline Failure parse_failure(const std::vector<std::string>& words) {
  return failure_of([&] { parsed(words); });
}

}  // namespace stoker::fixtures
