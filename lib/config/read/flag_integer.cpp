// SPDX-License-Identifier: Apache-2.0
#include "config/read/flag_integer.h"

#include "config/table/parse_value.h"
#include "core/error.h"
#include "core/format.h"

namespace stoker::config {

int64_t flag_integer(const std::string& flag, const std::string& text, int64_t least, int64_t most,
                     const std::string& hint) {
  int64_t value = 0;
  if (read_integer(text, least, most, value).empty()) return value;
  throw core::Error(core::ErrorKind::usage,
                    core::format("{}: {} is not accepted; {}", flag, shown(text), range_text(least, most)), hint);
}

}  // namespace stoker::config
