// SPDX-License-Identifier: Apache-2.0
// One row of the tables of bad inputs, and what must hold for every row.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "program.h"
#include "tiny_data.h"

namespace stoker::cli {

struct BadInput {
  std::string fact;                             ///< the name of the test
  std::function<Words(const Workplace&)> make;  ///< makes the input; returns the command line
  int exit_code;
  std::vector<std::string> messages;  ///< each stands on standard error: the path, the cause, the next step
};

inline std::string name_of(const ::testing::TestParamInfo<BadInput>& info) { return info.param.fact; }
void PrintTo(const BadInput& input, std::ostream* out);

/// A command line that needs no files.
std::function<Words(const Workplace&)> words(const Words& command_line);
/// `train -c c.yaml` with this content.
std::function<Words(const Workplace&)> config(const std::string& content);

/// Runs the row and checks its messages, and what holds for all of them: it ends by itself, with one last line for
/// machines, without a core file, a control character on the screen or a half-written file.
void expect_refused(const BadInput& input, const Workplace& work);
/// As above in a folder of its own, and nothing was begun: there is no run directory.
void expect_refused_before_the_run(const BadInput& input);
void expect_nothing_half_written(const Workplace& work);

}  // namespace stoker::cli
