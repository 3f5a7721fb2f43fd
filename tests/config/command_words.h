// SPDX-License-Identifier: Apache-2.0
// A command line as a test writes it, and what became of it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/config.h"
#include "config/read/syntax.h"
#include "core/error.h"

namespace stoker::fixtures {

/// The error of a failed call; kind bug and an empty message when it did not fail.
struct Failure {
  core::ErrorKind kind = core::ErrorKind::bug;
  std::string message;
  std::string hint;
  bool mentions(const std::string& words) const { return message.find(words) != std::string::npos; }
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

/// Parses `train <words>`, or as a command of another name does.
inline void parse_words(const std::vector<std::string>& words, config::Configuration& out,
                        const std::string& name = "") {
  bool dry_run = false;
  config::Syntax training;
  training.name = name;
  training.usage = "train [options]";
  training.takes = config::takes_all;
  training.reads_files = true;
  training.flags = {config::flag("dry-run", "Trains nothing.", dry_run)};
  config::parse_command_line({words, &training}, out);
}

inline std::unique_ptr<config::Configuration> parsed(const std::vector<std::string>& words,
                                                     const std::string& name = "") {
  auto configuration = std::make_unique<config::Configuration>();
  parse_words(words, *configuration, name);
  return configuration;
}

inline Failure parse_failure(const std::vector<std::string>& words) {
  return failure_of([&] { parsed(words); });
}

}  // namespace stoker::fixtures
