// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>
#include <map>
#include <string>

namespace stoker::core {
namespace {

/// Exit codes of docs/reference/exit-codes.md, with the first words of their meaning.
std::map<int, std::string> documented_codes() {
  std::ifstream file(STOKER_SOURCE_DIR "/docs/reference/exit-codes.md");
  std::map<int, std::string> codes;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("| ", 0) != 0) continue;
    const size_t digits = line.find_first_not_of("| *");
    const size_t meaning = line.find('|', digits);
    if (digits == std::string::npos || meaning == std::string::npos) continue;
    const int code = std::atoi(line.c_str() + digits);
    if (code > 0 || line[digits] == '0') codes.emplace(code, line.substr(meaning + 2));
  }
  return codes;
}

TEST(ErrorTest, EachKindHasItsExitCodeForSchedulers) {
  const std::map<ErrorKind, int> expected = {{ErrorKind::usage, 64},         {ErrorKind::data, 65},
                                             {ErrorKind::no_input, 66},      {ErrorKind::unavailable, 69},
                                             {ErrorKind::bug, 70},           {ErrorKind::os, 71},
                                             {ErrorKind::cannot_create, 73}, {ErrorKind::io, 74},
                                             {ErrorKind::peer_lost, 76},     {ErrorKind::permission, 77},
                                             {ErrorKind::config, 78},        {ErrorKind::diverged, 80},
                                             {ErrorKind::out_of_memory, 81}, {ErrorKind::run_dir_in_use, 82},
                                             {ErrorKind::backend, 83}};
  const std::map<int, std::string> documented = documented_codes();
  for (const auto& [kind, code] : expected) {
    EXPECT_EQ(exit_code(kind), code);
    EXPECT_EQ(documented.count(code), 1u) << code << " is not in docs/reference/exit-codes.md";
  }
  // Besides the kinds: finished, stopped, interrupted, crashed.
  EXPECT_EQ(documented.size(), expected.size() + 4)
      << "docs/reference/exit-codes.md has a code that no error ends with";
}

TEST(ErrorTest, CodesThatAreNoErrorsStandInTheDocumentation) {
  const std::map<int, std::string> documented = documented_codes();
  for (const auto& [code, words] : {std::pair(kExitOk, "finished"), std::pair(kExitStopped, "**stopped on request"),
                                    std::pair(kExitInterrupted, "interrupted with Ctrl-C")}) {
    ASSERT_EQ(documented.count(code), 1u) << code;
    EXPECT_EQ(documented.at(code).rfind(words, 0), 0u) << documented.at(code);
  }
}

TEST(ErrorTest, KnowsTheKindOfAnErrorNumber) {
  const auto kind_of = [](int number, ErrorKind otherwise = ErrorKind::os) {
    return errno_error(number, "write", "x", otherwise).kind();
  };
  EXPECT_EQ(kind_of(EACCES), ErrorKind::permission);
  EXPECT_EQ(kind_of(EPERM), ErrorKind::permission);
  EXPECT_EQ(kind_of(ENOENT), ErrorKind::no_input);
  EXPECT_EQ(kind_of(ENOENT, ErrorKind::cannot_create), ErrorKind::cannot_create);
  EXPECT_EQ(kind_of(ENOMEM), ErrorKind::out_of_memory);
  EXPECT_EQ(kind_of(ENOSPC, ErrorKind::cannot_create), ErrorKind::io);
  EXPECT_EQ(kind_of(EDQUOT), ErrorKind::io);
  EXPECT_EQ(kind_of(EIO), ErrorKind::io);
  EXPECT_EQ(kind_of(EBUSY), ErrorKind::os);
  EXPECT_STREQ(errno_error(EIO, "write", "a/b", ErrorKind::os).what(), "cannot write a/b: Input/output error");
}

}  // namespace
}  // namespace stoker::core
