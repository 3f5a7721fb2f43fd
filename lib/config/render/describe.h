// SPDX-License-Identifier: Apache-2.0
// Words about a row, shared by --help and docs/options.md.
#pragma once

#include <string>

#include "config/read/syntax.h"
#include "config/table/table.h"

namespace stoker::config {

/// "-b, --batch-size N", "--[no-]amp".
std::string flag_text(const Row& row);
std::string flag_text(const Flag& flag);
/// "pixels: auto, or 1 to 8192" or "none, center"; empty for switches and free text.
std::string accepted_text(const Row& row);
/// "images per device: 1 to 1048576; default 64". `of_run`: an option that is not given is that of the run.
std::string value_text(const Row& row, bool of_run = false);
/// " Also --batch, --x." or "".
std::string alias_text(const Row& row);
/// Above the options that few should touch.
inline constexpr const char* kExpertTitle = "Advanced options: rarely needed";
/// The built-in value, "none" for empty text.
std::string default_value_text(const Row& row);

}  // namespace stoker::config
